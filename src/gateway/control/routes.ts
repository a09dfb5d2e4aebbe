// What the operator does through CONTROL: revoke a user or one token, switch a model.

import { zValidator } from "@hono/zod-validator";
import { Hono } from "hono";
import * as z from "zod";
import type { Operation } from "../../contract/operation.ts";
import { Problem } from "../../errors.ts";
import { findModel, models } from "../../models/index.ts";
import { bodyErrors } from "../../wire/body-problem.ts";
import { orRefuse } from "../../wire/refusals.ts";
import { readSmallJson } from "../../wire/small-body.ts";
import type { GatewayContext, GatewayEnv } from "../env.ts";
import { unknownName } from "../known-names.ts";
import { isUserId, readOwner } from "../owners.ts";
import { modelNameSchema, usdSchema } from "../rules.ts";
import { askControl, readControlAnew } from "./control-reader.ts";
import type { ModelSwitch } from "./control-view.ts";

/** How long a token's revocation is kept where the operator does not say; our own tokens live a day at most. */
const tokenRevocationMs = 30 * 24 * 60 * 60_000;

const userParam = z.object({ user: z.string().refine(isUserId, "expected a user's id") });
const modelParam = z.object({ model: modelNameSchema });

const revokeSchema = z
  .strictObject({
    tokenId: z.string().refine(isUserId, "expected a token's jti").optional().describe("Only the token with this jti."),
    expiresAt: z.iso.datetime().optional().describe("When that token expires by itself. Without it, in 30 days."),
  })
  .meta({ id: "RevokeRequest" });
const revokedSchema = z
  .object({ user: z.string(), tokenId: z.string().optional(), revokedAt: z.iso.datetime() })
  .meta({ id: "Revoked" });

const switchSchema = z
  .strictObject({
    enabled: z.boolean().default(true),
    passthrough: z.boolean().default(false).describe("Opens an endpoint that the catalog does not know."),
    maxUsd: usdSchema.optional().describe("What one request of a passthrough is reserved at."),
  })
  .refine(({ passthrough, maxUsd }) => !passthrough || maxUsd !== undefined, {
    path: ["maxUsd"],
    error: "a passthrough needs a price",
  })
  .meta({ id: "ModelSwitch" });
const modelAnswerSchema = switchSchema.extend({ model: z.string() }).meta({ id: "ModelSwitchOf" });

export const controlRoutes = new Hono<GatewayEnv>()
  .post("/admin/users/:user/revoke", zValidator("param", userParam, orRefuse), async (c) => {
    const { user } = c.req.valid("param");
    const { tokenId, expiresAt } = await readSmallJson(c.req.raw, revokeSchema);
    const now = c.get("exchange").startedAt;
    const until = expiresAt ? Date.parse(expiresAt) : now + tokenRevocationMs;
    await askControl(c.env, (control) =>
      tokenId === undefined ? control.revokeUser(readOwner(user), now) : control.revokeToken(tokenId, until, now),
    );
    return c.json({ user: readOwner(user), ...(tokenId && { tokenId }), revokedAt: new Date(now).toISOString() });
  })
  .get("/admin/models", async (c) => {
    const switches = await switchesOf(c);
    return c.json({ models: [...switches].map(([model, value]) => ({ model, ...value })) });
  })
  .get("/admin/models/:model", zValidator("param", modelParam, orRefuse), async (c) => {
    const { model } = c.req.valid("param");
    const switches = await switchesOf(c);
    const found = switches.get(model);
    if (!found) throw new Problem("MODEL_NOT_FOUND", unknownName("model", model, switches.keys()));
    return c.json({ model, ...found });
  })
  .put("/admin/models/:model", zValidator("param", modelParam, orRefuse), async (c) => {
    const { model } = c.req.valid("param");
    const { maxUsd, ...flags } = await readSmallJson(c.req.raw, switchSchema);
    const value: ModelSwitch = { ...flags, ...(maxUsd !== undefined && { maxUsd }) };
    const isNew = !findModel(model) && !(await askControl(c.env, (control) => control.model(model)));
    if (isNew && !value.passthrough) throw new Problem("INVALID_REQUEST", unknownModel(model));
    await askControl(c.env, (control) => control.setModel(model, value));
    return c.json({ model, ...value });
  });

/** A misspelt one would stay on. */
function unknownModel(model: string): string {
  const known = models.map(({ id }) => id);
  return `${unknownName("model", model, known)}; "passthrough" and "maxUsd" open another`;
}

/** The catalog's models, and the endpoints that the operator opened. */
async function switchesOf(c: GatewayContext): Promise<Map<string, ModelSwitch>> {
  const usual: ModelSwitch = { enabled: true, passthrough: false };
  return new Map([...models.map(({ id }) => [id, usual] as const), ...(await readControlAnew(c)).models]);
}

const written = [...bodyErrors, "INVALID_REQUEST", "UNAUTHORIZED", "CONTROL_UNAVAILABLE"] as const;

export const controlOperations: readonly Operation[] = [
  {
    method: "post",
    path: "/admin/users/{user}/revoke",
    summary: "Revoke what was issued to a user so far, or one token",
    access: "operator",
    body: revokeSchema,
    answer: revokedSchema,
    errors: written,
  },
  {
    method: "get",
    path: "/admin/models/{model}",
    summary: "How a model is switched",
    access: "operator",
    answer: modelAnswerSchema,
    errors: ["INVALID_REQUEST", "UNAUTHORIZED", "MODEL_NOT_FOUND", "CONTROL_UNAVAILABLE"],
  },
  {
    method: "get",
    path: "/admin/models",
    summary: "How each model is switched",
    access: "operator",
    answer: z.object({ models: z.array(modelAnswerSchema) }),
    errors: ["UNAUTHORIZED", "CONTROL_UNAVAILABLE"],
  },
  {
    method: "put",
    path: "/admin/models/{model}",
    summary: "Switch a model on or off, or open an endpoint",
    access: "operator",
    body: switchSchema,
    answer: modelAnswerSchema,
    errors: written,
  },
];
