// Container registry auths: the routes.
import { answerList } from "./record-list.ts";
import { registryAuthCreateSchema, registryAuthSchema } from "./registry-auth.ts";
import { resourceRoutes } from "./resource.ts";
import { newId } from "./rows.ts";

export const registryAuthRoutes = resourceRoutes({
  name: "ContainerRegistryAuth",
  path: "/containerregistryauth",
  id: "containerRegistryAuthId",
  answer: registryAuthSchema,
  list: {
    summary: "The container registry auths",
    answer: ({ records }) => answerList([], (after) => records().listRegistryAuths(after)),
  },
  create: {
    summary: "Name credentials: the password is not kept, since no registry is ever asked",
    body: registryAuthCreateSchema,
    errors: ["NAME_TAKEN"],
    make: ({ records }, { name, username }) => records().createRegistryAuth({ id: newId(), name }, username),
  },
  get: { summary: "A registry auth", find: ({ records }, id) => records().findRegistryAuth(id) },
  remove: {
    summary: "Delete a registry auth that nothing uses",
    errors: ["IN_USE"],
    act: ({ records }, id) => records().deleteRegistryAuth(id),
  },
});
