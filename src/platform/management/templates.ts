// Templates: what is accepted, the rules, the routes.
import { Hono } from "hono";
import * as z from "zod";
import type { Operation } from "../../contract/operation.ts";
import { Problem } from "../../errors.ts";
import { accepted } from "../answers.ts";
import * as fields from "./fields.ts";
import { answerList, found, idIn, listed, type ManagementEnv, query, readBody, written } from "./resource.ts";
import { newId } from "./rows.ts";
import { officialTemplate, officialTemplates, type Template } from "./template.ts";
import { categories } from "./vocabulary.ts";

const changeable = {
  name: fields.name,
  imageName: fields.imageName,
  containerDiskInGb: fields.diskInGb,
  containerRegistryAuthId: fields.reference,
  dockerEntrypoint: fields.command,
  dockerStartCmd: fields.command,
  env: fields.environment,
  isPublic: z.boolean(),
  ports: fields.ports,
  readme: z.string().max(262_144),
  volumeInGb: fields.diskInGb,
  volumeMountPath: fields.mountPath,
};

export const templateCreateSchema = z
  .object({
    ...changeable,
    category: z.enum(categories).default("NVIDIA"),
    containerDiskInGb: changeable.containerDiskInGb.default(50),
    containerRegistryAuthId: changeable.containerRegistryAuthId.optional(),
    dockerEntrypoint: changeable.dockerEntrypoint.default([]),
    dockerStartCmd: changeable.dockerStartCmd.default([]),
    env: changeable.env.default({}),
    isPublic: changeable.isPublic.default(false),
    isServerless: z.boolean().default(false),
    ports: changeable.ports.default(fields.defaultPorts),
    readme: changeable.readme.default(""),
    volumeInGb: changeable.volumeInGb.default(20),
    volumeMountPath: changeable.volumeMountPath.default("/workspace"),
  })
  .meta({ id: "TemplateCreateInput" });
export const templateUpdateSchema = z.object(changeable).partial().meta({ id: "TemplateUpdateInput" });
export type TemplateChange = z.output<typeof templateUpdateSchema>;

export const templateSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    imageName: z.string(),
    category: z.enum(categories),
    containerDiskInGb: z.int(),
    containerRegistryAuthId: z.string().optional(),
    dockerEntrypoint: z.array(z.string()),
    dockerStartCmd: z.array(z.string()),
    earned: z.number().describe("USD that its creator earned by what others ran with it."),
    env: z.record(z.string(), z.string()),
    isPublic: z.boolean(),
    isRunpod: z.boolean().describe("Official: it ships with the platform."),
    isServerless: z.boolean(),
    ports: z.array(z.string()),
    readme: z.string(),
    runtimeInMin: z.int().describe("Minutes that others ran it."),
    volumeInGb: z.int(),
    volumeMountPath: z.string(),
  })
  .meta({ id: "Template" });

const includeSchema = z.object({
  includeEndpointBoundTemplates: fields.flag.describe("Also those that endpoints use."),
  includePublicTemplates: fields.flag.describe("Also the public ones of others."),
  includeRunpodTemplates: fields.flag.describe("Also the official ones."),
});

function newTemplate(input: z.output<typeof templateCreateSchema>): Template {
  const { containerRegistryAuthId, ...others } = input;
  const fresh = { ...others, id: newId(), isRunpod: false, earned: 0, runtimeInMin: 0 };
  return containerRegistryAuthId ? { ...fresh, containerRegistryAuthId } : fresh;
}

const update = ["/:templateId", "/:templateId/update"] as const;

export const templates = new Hono<ManagementEnv>()
  .get("/", query(includeSchema), (c) => {
    const include = c.req.valid("query");
    const [books, catalogue, account] = [c.get("books"), c.get("catalogue"), c.get("account")];
    const own = (after: number) => books().listTemplates(include.includeEndpointBoundTemplates, after);
    const others = (after: number) => catalogue().listPublicTemplates(account, after);
    const official = include.includeRunpodTemplates ? officialTemplates : [];
    return answerList(official, own, ...(include.includePublicTemplates ? [others] : []));
  })
  .post("/", async (c) =>
    c.json(
      accepted(
        await c
          .get("books")()
          .createTemplate(await readCreate(c)),
      ),
    ),
  )
  .get("/:templateId", query(includeSchema), async (c) => {
    const [id, include] = [idIn(c, "templateId"), c.req.valid("query")];
    const official = include.includeRunpodTemplates ? officialTemplate(id) : undefined;
    const own = official ?? (await c.get("books")().findTemplate(id, include.includeEndpointBoundTemplates));
    const template = own ?? (include.includePublicTemplates ? await c.get("catalogue")().findPublicTemplate(id) : null);
    if (!template) throw new Problem("NOT_FOUND", "template not found");
    return c.json(template);
  })
  .on(["PATCH"], update[0], changeTemplate)
  .on(["POST"], update[1], changeTemplate)
  .delete("/:templateId", async (c) => {
    accepted(await c.get("books")().deleteTemplate(idIn(c, "templateId")));
    return c.body(null, 204);
  });

async function readCreate(c: Parameters<typeof readBody>[0]): Promise<Template> {
  return newTemplate(await readBody(c, templateCreateSchema));
}

async function changeTemplate(c: Parameters<typeof readBody>[0]): Promise<Response> {
  const id = idIn(c, "templateId");
  return c.json(
    accepted(
      await c
        .get("books")()
        .updateTemplate(id, await readBody(c, templateUpdateSchema)),
    ),
  );
}

const one = { access: "platform", answer: templateSchema } as const;
const change = {
  ...one,
  body: templateUpdateSchema,
  errors: [...written, "NOT_FOUND", "NAME_TAKEN", "IN_USE"],
} as const;

export const templateOperations: readonly Operation[] = [
  {
    ...one,
    id: "ListTemplates",
    method: "get",
    path: "/templates",
    summary: "The templates",
    errors: listed,
    query: includeSchema,
    answer: z.array(templateSchema),
  },
  {
    ...one,
    id: "CreateTemplate",
    method: "post",
    path: "/templates",
    summary: "Create a template",
    body: templateCreateSchema,
    errors: [...written, "NAME_TAKEN"],
  },
  {
    ...one,
    id: "GetTemplate",
    method: "get",
    path: "/templates/{templateId}",
    summary: "A template",
    query: includeSchema,
    errors: found,
  },
  { ...change, id: "UpdateTemplate", method: "patch", path: "/templates/{templateId}", summary: "Change a template" },
  {
    ...change,
    id: "UpdateTemplateByPost",
    method: "post",
    path: "/templates/{templateId}/update",
    summary: "The same as PATCH",
  },
  {
    access: "platform",
    id: "DeleteTemplate",
    method: "delete",
    path: "/templates/{templateId}",
    status: 204,
    summary: "Delete a template that nothing uses",
    errors: [...found, "IN_USE"],
  },
];
