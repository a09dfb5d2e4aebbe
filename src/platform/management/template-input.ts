// What templates are made of, asked by and answered as.
import * as z from "zod";
import * as fields from "./fields.ts";
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
export type TemplateInput = z.output<typeof templateCreateSchema>;
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
    earned: z.number().describe("Always 0: nothing is earned by templates here."),
    env: z.record(z.string(), z.string()),
    isPublic: z.boolean(),
    isRunpod: z.boolean().describe("Official: it ships with the platform."),
    isServerless: z.boolean(),
    ports: z.array(z.string()),
    readme: z.string(),
    runtimeInMin: z.int().describe("Always 0: what others run with it is not counted."),
    volumeInGb: z.int(),
    volumeMountPath: z.string(),
  })
  .meta({ id: "Template" });
export type Template = Readonly<z.output<typeof templateSchema>>;

export const templateIncludeSchema = z.object({
  includeEndpointBoundTemplates: fields.flag.describe("Also those that endpoints use."),
  includePublicTemplates: fields.flag.describe("Also the public ones of others."),
  includeRunpodTemplates: fields.flag.describe("Also the official ones."),
});
