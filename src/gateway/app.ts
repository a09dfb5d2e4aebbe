// The gateway's routes, in order, with their guards.
import { Hono } from "hono";
import type { Operation } from "../contract/operation.ts";
import { catalog, catalogOperations } from "./catalog.ts";
import { controlOperations, controlRoutes } from "./control/routes.ts";
import type { GatewayEnv } from "./env.ts";
import { identifyCaller, operatorOnly } from "./guards.ts";
import { minting, mintingOperations } from "./identity/minting.ts";
import { sessionOperations, sessionRoutes } from "./identity/sessions.ts";
import { managementOperations } from "./management.ts";

export const gateway = new Hono<GatewayEnv>();

gateway.route("/", catalog);
gateway.route("/", sessionRoutes(identifyCaller));
gateway.route("/", minting);

gateway.use("/admin/*", operatorOnly);
gateway.route("/", controlRoutes);

export const gatewayOperations: readonly Operation[] = [
  ...catalogOperations,
  ...sessionOperations,
  ...mintingOperations,
  ...controlOperations,
  ...managementOperations,
];
