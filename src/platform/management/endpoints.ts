// Serverless endpoints: what is accepted, the routes.
import { type Context, Hono } from "hono";
import * as z from "zod";
import { limits } from "../../contract/limits.ts";
import type { Operation } from "../../contract/operation.ts";
import { accepted } from "../answers.ts";
import * as fields from "./fields.ts";
import { podSchema } from "./pod.ts";
import { cpuFlavorIds, gpuTypeIds } from "./prices.ts";
import { answerList, found, idIn, listed, type ManagementEnv, query, readBody, written } from "./resource.ts";
import { newId } from "./rows.ts";
import { templateSchema } from "./templates.ts";
import { computeTypes, dataCenterIds, scalerTypes } from "./vocabulary.ts";

const maxWorkers = 1000;
const { min: minTimeoutMs, max: maxTimeoutMs } = limits.executionTimeoutMs;

const changeable = {
  allowedCudaVersions: fields.cudas,
  cpuFlavorIds: z.array(z.enum(cpuFlavorIds)).min(1),
  dataCenterIds: fields.dataCenters,
  executionTimeoutMs: z.int().min(minTimeoutMs).max(maxTimeoutMs).describe("For jobs that bring none of their own."),
  flashboot: z.boolean(),
  gpuCount: fields.count,
  gpuTypeIds: z.array(z.enum(gpuTypeIds)).min(1).describe("In priority order: the first that is available is taken."),
  idleTimeout: z.int().min(1).max(3600),
  minCudaVersion: fields.cuda,
  name: fields.name,
  networkVolumeId: fields.reference,
  networkVolumeIds: z.array(fields.id).max(32),
  scalerType: z.enum(scalerTypes),
  scalerValue: z.int().min(1).max(100_000),
  templateId: fields.id,
  vcpuCount: fields.count,
  workersMax: z.int().min(0).max(maxWorkers),
  workersMin: z.int().min(0).max(maxWorkers),
};

export const endpointUpdateSchema = z.object(changeable).partial().meta({ id: "EndpointUpdateInput" });
export const endpointCreateSchema = endpointUpdateSchema
  .extend({
    templateId: changeable.templateId,
    computeType: z.enum(computeTypes).default("GPU"),
    dataCenterIds: changeable.dataCenterIds.default([...dataCenterIds]),
    executionTimeoutMs: changeable.executionTimeoutMs.default(limits.executionTimeoutMs.default),
    gpuCount: changeable.gpuCount.default(1),
    idleTimeout: changeable.idleTimeout.default(5),
    scalerType: changeable.scalerType.default("QUEUE_DELAY"),
    scalerValue: changeable.scalerValue.default(4),
    vcpuCount: changeable.vcpuCount.default(2),
    workersMax: changeable.workersMax.default(3),
    workersMin: changeable.workersMin.default(0),
  })
  .meta({ id: "EndpointCreateInput" });
export type EndpointInput = z.output<typeof endpointCreateSchema>;
export type EndpointChange = z.output<typeof endpointUpdateSchema>;

const { vcpuCount, minCudaVersion, allowedCudaVersions, networkVolumeIds, ...answered } = changeable;
export const endpointSchema = z
  .object({
    ...answered,
    ...z.object({ vcpuCount, minCudaVersion, allowedCudaVersions, gpuTypeIds: answered.gpuTypeIds }).partial().shape,
    ...z.object({ cpuFlavorIds: answered.cpuFlavorIds, flashboot: answered.flashboot }).partial().shape,
    id: z.string(),
    computeType: z.enum(computeTypes),
    createdAt: z.iso.datetime(),
    env: z.record(z.string(), z.string()),
    instanceIds: z.array(z.string()),
    networkVolumeId: z.string().optional(),
    networkVolumeIds,
    template: templateSchema.optional(),
    userId: z.string(),
    version: z.int().describe("How often it was changed."),
    workers: z.array(podSchema).optional(),
  })
  .meta({ id: "Endpoint" });
export type Endpoint = z.output<typeof endpointSchema>;

const includeSchema = z.object({
  includeTemplate: fields.flag.describe("With the template it was made of."),
  includeWorkers: fields.flag.describe("With the workers that are attached."),
});
export type EndpointIncludes = z.output<typeof includeSchema>;

export const endpoints = new Hono<ManagementEnv>()
  .get("/", query(includeSchema), (c) => {
    const [books, include] = [c.get("books"), c.req.valid("query")];
    return answerList([], (after) => books().listEndpoints(include, after));
  })
  .post("/", async (c) => {
    const input = await readBody(c, endpointCreateSchema);
    return c.json(accepted(await c.get("books")().createEndpoint(newId(), input)));
  })
  .get("/:endpointId", query(includeSchema), async (c) => {
    return c.json(accepted(await c.get("books")().findEndpoint(idIn(c, "endpointId"), c.req.valid("query"))));
  })
  .on(["PATCH"], "/:endpointId", changeEndpoint)
  .on(["POST"], "/:endpointId/update", changeEndpoint)
  .delete("/:endpointId", async (c) => {
    accepted(await c.get("books")().deleteEndpoint(idIn(c, "endpointId")));
    return c.body(null, 204);
  });

async function changeEndpoint(c: Context<ManagementEnv>): Promise<Response> {
  const id = idIn(c, "endpointId");
  return c.json(
    accepted(
      await c
        .get("books")()
        .updateEndpoint(id, await readBody(c, endpointUpdateSchema)),
    ),
  );
}

const one = { access: "platform", answer: endpointSchema } as const;
const byId = { path: "/endpoints/{endpointId}" } as const;
const change = { ...one, body: endpointUpdateSchema, errors: [...written, "NOT_FOUND"] } as const;

export const endpointOperations: readonly Operation[] = [
  {
    ...one,
    id: "ListEndpoints",
    method: "get",
    path: "/endpoints",
    summary: "The endpoints",
    errors: listed,
    query: includeSchema,
    answer: z.array(endpointSchema),
  },
  {
    ...one,
    id: "CreateEndpoint",
    method: "post",
    path: "/endpoints",
    summary: "Create an endpoint",
    body: endpointCreateSchema,
    errors: written,
  },
  {
    ...one,
    ...byId,
    id: "GetEndpoint",
    method: "get",
    summary: "An endpoint",
    query: includeSchema,
    errors: found,
  },
  { ...change, ...byId, id: "UpdateEndpoint", method: "patch", summary: "Change an endpoint" },
  {
    ...change,
    id: "UpdateEndpointByPost",
    method: "post",
    path: "/endpoints/{endpointId}/update",
    summary: "The same as PATCH",
  },
  {
    ...byId,
    access: "platform",
    id: "DeleteEndpoint",
    method: "delete",
    status: 204,
    errors: found,
    summary: "Delete an endpoint with its queue, its logs and its history, for good",
  },
];
