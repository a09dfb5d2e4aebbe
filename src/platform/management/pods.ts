// Pods: the routes. They are records with a price and a clock; no machine is rented.
import { type Context, Hono } from "hono";
import * as z from "zod";
import type { Operation } from "../../contract/operation.ts";
import { accepted } from "../answers.ts";
import { type PodEvent, podSchema } from "./pod.ts";
import { podCreateSchema, podFilterSchema, podIncludeSchema, podUpdateSchema } from "./pod-input.ts";
import { answerList, found, idIn, listed, type ManagementEnv, query, readBody, written } from "./resource.ts";
import { newId } from "./rows.ts";

const actions = ["start", "stop", "restart", "reset"] as const satisfies readonly PodEvent[];

export const pods = new Hono<ManagementEnv>()
  .get("/", query(podFilterSchema), async (c) => {
    const [books, filter] = [c.get("books"), c.req.valid("query")];
    const workers = filter.includeWorkers ? await books().listWorkers(filter) : [];
    const records = (after: number) => books().listPods(filter, after);
    return filter.endpointId === undefined ? answerList(workers, records) : answerList(workers);
  })
  .post("/", async (c) => {
    const input = await readBody(c, podCreateSchema);
    return c.json(accepted(await c.get("books")().createPod(newId(), input)), 201);
  })
  .get("/:podId", query(podIncludeSchema), async (c) => {
    return c.json(accepted(await c.get("books")().findPod(idIn(c, "podId"), c.req.valid("query"))));
  })
  .on(["PATCH"], "/:podId", changePod)
  .on(["POST"], "/:podId/update", changePod)
  .delete("/:podId", async (c) => {
    accepted(await c.get("books")().actOnPod(idIn(c, "podId"), "terminate"));
    return c.body(null, 204);
  });

for (const action of actions) {
  pods.post(`/:podId/${action}`, async (c) => {
    return c.json(accepted(await c.get("books")().actOnPod(idIn(c, "podId"), action)));
  });
}

async function changePod(c: Context<ManagementEnv>): Promise<Response> {
  const id = idIn(c, "podId");
  return c.json(
    accepted(
      await c
        .get("books")()
        .updatePod(id, await readBody(c, podUpdateSchema)),
    ),
  );
}

const one = { access: "platform", answer: podSchema } as const;
const byId = { path: "/pods/{podId}" } as const;
const change = { ...one, body: podUpdateSchema, errors: [...written, "NOT_FOUND", "LOCKED"] } as const;
const summaries = {
  start: "Start or resume a Pod",
  stop: "Stop a Pod: its clock stops too",
  restart: "Restart a running Pod",
  reset: "Begin anew: what its container disk holds is gone",
};

export const podOperations: readonly Operation[] = [
  {
    ...one,
    id: "ListPods",
    method: "get",
    path: "/pods",
    summary: "The Pods",
    errors: listed,
    query: podFilterSchema,
    answer: z.array(podSchema),
  },
  {
    ...one,
    id: "CreatePod",
    method: "post",
    path: "/pods",
    status: 201,
    errors: written,
    summary: "Create a Pod: a record with a price and a clock, no machine is rented",
    body: podCreateSchema,
  },
  {
    ...one,
    ...byId,
    id: "GetPod",
    method: "get",
    summary: "A Pod",
    errors: found,
    query: podIncludeSchema,
  },
  { ...change, ...byId, id: "UpdatePod", method: "patch", summary: "Change a Pod, which may reset it" },
  { ...change, id: "UpdatePodByPost", method: "post", path: "/pods/{podId}/update", summary: "The same as PATCH" },
  {
    ...byId,
    access: "platform",
    id: "DeletePod",
    method: "delete",
    status: 204,
    summary: "Delete a Pod",
    errors: found,
  },
  ...actions.map((action): Operation => {
    const id = `${action.charAt(0).toUpperCase()}${action.slice(1)}Pod`;
    const errors = [...found, "LOCKED", "WRONG_STATE"] as const;
    return { ...one, id, method: "post", path: `/pods/{podId}/${action}`, summary: summaries[action], errors };
  }),
];
