// Serverless endpoints: the routes.
import { endpointCreateSchema, endpointIncludeSchema, endpointSchema, endpointUpdateSchema } from "./endpoint.ts";
import { answerList } from "./record-list.ts";
import { changeRoutes, resourceRoutes } from "./resource.ts";
import { newId } from "./rows.ts";

const endpoint = { name: "Endpoint", path: "/endpoints", id: "endpointId", answer: endpointSchema } as const;

export const endpointRoutes = [
  ...resourceRoutes({
    ...endpoint,
    list: {
      summary: "The endpoints",
      query: endpointIncludeSchema,
      answer: ({ records }, query) => answerList([], (after) => records().listEndpoints(query, after)),
    },
    create: {
      summary: "Create an endpoint",
      body: endpointCreateSchema,
      make: ({ records }, body) => records().createEndpoint(newId(), body),
    },
    get: {
      summary: "An endpoint",
      query: endpointIncludeSchema,
      find: ({ records }, id, query) => records().findEndpoint(id, query),
    },
    remove: {
      summary: "Delete an endpoint with its queue, its logs and its history, for good",
      act: ({ records }, id) => records().deleteEndpoint(id),
    },
  }),
  ...changeRoutes(endpoint, {
    summary: "Change an endpoint",
    body: endpointUpdateSchema,
    act: ({ records }, id, change) => records().updateEndpoint(id, change),
  }),
];
