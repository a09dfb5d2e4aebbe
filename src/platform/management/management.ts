// The management interface: its resources under one roof, and the document that is made of their schemas.
import { Hono } from "hono";
import * as z from "zod";
import { type Operation, openApi } from "../../contract/operation.ts";
import { authenticate } from "../auth.ts";
import { billing, billingOperations } from "./billing.ts";
import { endpointOperations, endpoints } from "./endpoints.ts";
import { networkVolumes, volumeOperations } from "./network-volumes.ts";
import { podOperations, pods } from "./pods.ts";
import { registryAuthOperations, registryAuths } from "./registry-auths.ts";
import { type ManagementEnv, openBooks } from "./resource.ts";
import { templateOperations, templates } from "./templates.ts";

const operations: readonly Operation[] = [
  ...templateOperations,
  ...endpointOperations,
  ...podOperations,
  ...volumeOperations,
  ...registryAuthOperations,
  ...billingOperations,
];
const about = { title: "Sluice management", version: "0.1.0" };

export const management = new Hono<ManagementEnv>();

management.use(async (c, next) => {
  c.get("exchange").errorShape = "management";
  await next();
});
management.get("/openapi.json", (c) => c.json(openApi([document, ...operations], about, base)));
management.use(authenticate, openBooks);
management.route("/templates", templates);
management.route("/endpoints", endpoints);
management.route("/pods", pods);
management.route("/networkvolumes", networkVolumes);
management.route("/containerregistryauth", registryAuths);
management.route("/billing", billing);

const base = "/platform/v1";

const document: Operation = {
  method: "get",
  path: "/openapi.json",
  id: "GetOpenAPI",
  summary: "The document of this interface",
  access: "public",
  answer: z.looseObject({}),
};

export const managementOperations: readonly Operation[] = [document, ...operations].map((operation) => ({
  ...operation,
  path: `${base}${operation.path}`,
}));
