// Which model a call is for: one of the catalog, or an endpoint that the operator opened at a price.
import { Problem } from "../../errors.ts";
import { findModel } from "../../models/index.ts";
import type { Model } from "../../models/model.ts";
import type { Guard } from "../behind.ts";
import type { GatewayEnv } from "../env.ts";
import { microUsd } from "../rules.ts";

export interface Target {
  readonly name: string;
  /** Undefined for an endpoint that the catalog does not know. */
  readonly model: Model | undefined;
  readonly maxMicroUsd: number;
}

export interface JobEnv {
  Bindings: GatewayEnv["Bindings"];
  Variables: GatewayEnv["Variables"] & { target: Target };
}

const namePattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

export const knownModel: Guard<JobEnv> = (c) => {
  const name = c.req.param("model") ?? "";
  const target = namePattern.test(name) ? targetOf(name, c.get("control").models.get(name)) : undefined;
  if (!target) throw new Problem("MODEL_NOT_FOUND", "There is no such model.");
  c.get("exchange").model = name;
  c.set("target", target);
};

interface Switch {
  readonly enabled: boolean;
  readonly passthrough: boolean;
  readonly maxUsd?: number;
}

function targetOf(name: string, setting: Switch | undefined): Target | undefined {
  const model = findModel(name);
  if (setting?.enabled === false) throw new Problem("MODEL_DISABLED", "This model is switched off.");
  if (model) return { name, model, maxMicroUsd: model.maxPrice };
  return setting?.passthrough ? { name, model, maxMicroUsd: microUsd(setting.maxUsd ?? 0) } : undefined;
}
