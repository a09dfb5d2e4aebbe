// The gateway's routes, in order, with their guards.
import { Hono } from "hono";
import type { Operation } from "../contract/operation.ts";
import { behind } from "./behind.ts";
import { catalog, catalogOperations } from "./catalog.ts";
import { controlOperations, controlRoutes } from "./control/routes.ts";
import type { GatewayContext, GatewayEnv } from "./env.ts";
import { identifyCaller, operatorOnly } from "./guards.ts";
import { minting, mintingOperations } from "./identity/minting.ts";
import { sessionOperations, sessionRoutes } from "./identity/sessions.ts";
import { imagesOf } from "./images/images.ts";
import { imageOperations, imageRoutes, type OwnMedia } from "./images/routes.ts";
import { hookOperations, hookRoutes } from "./jobs/hooks.ts";
import { type FindUpstream, jobOperations, jobRoutes } from "./jobs/routes.ts";
import { managementOperations } from "./management.ts";
import { operatorPlans } from "./operator-plans.ts";
import { budgetOperations, budgetRoutes } from "./quota/admin-budget.ts";
import { planOperations, planRoutes } from "./quota/admin-plans.ts";
import { userOperations, userRoutes } from "./quota/admin-users.ts";
import { tellMeter } from "./quota/revocation.ts";
import { usageOperations, usageRoute } from "./quota/usage-route.ts";

const findImages = (c: GatewayContext) => imagesOf(c.get("config"), c.env);

export function gatewayRoutes(findUpstream: FindUpstream, ownMedia: OwnMedia): Hono<GatewayEnv> {
  const gateway = new Hono<GatewayEnv>();
  gateway.route("/", catalog);
  gateway.route("/", sessionRoutes(identifyCaller));
  gateway.route("/", minting);
  gateway.route("/", jobRoutes(findUpstream, findImages));
  gateway.route("/", hookRoutes(findImages, findUpstream));
  gateway.route("/", imageRoutes(findImages, ownMedia));
  gateway.route("/", usageRoute);
  gateway.use("/admin/*", behind<GatewayEnv>(operatorOnly));
  gateway.use("/admin/users/:user/revoke", tellMeter);
  gateway.route("/", controlRoutes);
  gateway.route("/", userRoutes);
  gateway.route("/", planRoutes(operatorPlans));
  gateway.route("/", budgetRoutes);
  return gateway;
}

export const gatewayOperations: readonly Operation[] = [
  ...catalogOperations,
  ...sessionOperations,
  ...mintingOperations,
  ...jobOperations,
  ...hookOperations,
  ...imageOperations,
  ...usageOperations,
  ...controlOperations,
  ...userOperations,
  ...planOperations,
  ...budgetOperations,
  ...managementOperations,
];
