// The management interface: its resources under one roof, and the document that is made of their schemas.
import * as z from "zod";
import { openApi } from "../../contract/operation.ts";
import { type PlatformRoute, platformRoute } from "../platform-route.ts";
import { billingRoutes } from "./billing.ts";
import { endpointRoutes } from "./endpoints.ts";
import { managementErrors, managementPath } from "./management-route.ts";
import { volumeRoutes } from "./network-volumes.ts";
import { podRoutes } from "./pods.ts";
import { registryAuthRoutes } from "./registry-auths.ts";
import { templateRoutes } from "./templates.ts";

const document = platformRoute(
  {
    id: "GetOpenAPI",
    method: "get",
    path: `${managementPath}/openapi.json`,
    summary: "The document of this interface",
    access: "public",
    answer: z.looseObject({}),
  },
  [managementErrors],
  () => Response.json(describe()),
);

export const managementRoutes: readonly PlatformRoute[] = [
  document,
  ...templateRoutes,
  ...endpointRoutes,
  ...podRoutes,
  ...volumeRoutes,
  ...registryAuthRoutes,
  ...billingRoutes,
];

/** Its paths begin where the interface is mounted. */
function describe() {
  const operations = managementRoutes.map(({ operation }) => ({
    ...operation,
    path: operation.path.slice(managementPath.length),
  }));
  return openApi(operations, { title: "Sluice management", version: "0.1.0" }, managementPath);
}
