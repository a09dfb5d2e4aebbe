// Pods: the routes. They are records with a price and a clock; no machine is rented.
import * as z from "zod";
import { orThrow } from "../answers.ts";
import * as fields from "./fields.ts";
import { managementRoute } from "./management-route.ts";
import { type PodEvent, podSchema } from "./pod.ts";
import { podCreateSchema, podFilterSchema, podIncludeSchema, podUpdateSchema } from "./pod-input.ts";
import { answerList } from "./record-list.ts";
import { changeRoutes, resourceRoutes } from "./resource.ts";
import { newId } from "./rows.ts";

const actions = [
  { action: "start", id: "StartPod", summary: "Start or resume a Pod" },
  { action: "stop", id: "StopPod", summary: "Stop a Pod: its clock stops too" },
  { action: "restart", id: "RestartPod", summary: "Restart a running Pod" },
  { action: "reset", id: "ResetPod", summary: "Begin anew: what its container disk holds is gone" },
] as const satisfies readonly { action: PodEvent; id: string; summary: string }[];

const pod = { name: "Pod", path: "/pods", id: "podId", answer: podSchema } as const;

export const podRoutes = [
  ...resourceRoutes({
    ...pod,
    list: {
      summary: "The Pods",
      query: podFilterSchema,
      answer: ({ records }, filter) => {
        const workers = (after: number) => records().pageOfWorkers(filter, after);
        const pods = (after: number) => records().listPods(filter, after);
        const own = filter.endpointId === undefined ? [pods] : [];
        return answerList([], ...(filter.includeWorkers ? [workers] : []), ...own);
      },
    },
    create: {
      status: 201,
      summary: "Create a Pod: a record with a price and a clock, no machine is rented",
      body: podCreateSchema,
      make: ({ records }, body) => records().createPod(newId(), body),
    },
    get: {
      summary: "A Pod",
      query: podIncludeSchema,
      find: ({ records }, id, query) => records().findPod(id, query),
    },
    remove: { summary: "Delete a Pod", act: ({ records }, id) => records().actOnPod(id, "terminate") },
  }),
  ...changeRoutes(pod, {
    summary: "Change a Pod, which may reset it",
    body: podUpdateSchema,
    errors: ["LOCKED"],
    act: ({ records }, id, change) => records().updatePod(id, change),
  }),
  ...actions.map(({ action, id, summary }) =>
    managementRoute(
      {
        id,
        method: "post",
        path: `/pods/:podId/${action}`,
        summary,
        params: z.object({ podId: fields.id }),
        answer: podSchema,
        errors: ["NOT_FOUND", "LOCKED", "WRONG_STATE"],
      },
      async ({ records }, { params }) => Response.json(orThrow(await records().actOnPod(params.podId, action))),
    ),
  ),
];
