// Which model a call is for: one of the catalog, or an endpoint that the operator opened at a price.
import { Problem } from "../../errors.ts";
import { microUsd } from "../../micro-usd.ts";
import { findModel } from "../../models/index.ts";
import type { Model } from "../../models/model.ts";
import type { ControlView } from "../operator-settings/control-view.ts";

export interface CalledModel {
  readonly name: string;
  /** Undefined for an endpoint that the catalog does not know. */
  readonly model: Model | undefined;
  readonly maxMicroUsd: number;
}

const namePattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

/** Throws where there is no such model, or the operator switched it off. */
export function calledModel(name: string, control: Pick<ControlView, "models">): CalledModel {
  if (!namePattern.test(name)) throw unknownModel;
  const setting = control.models.get(name);
  const model = findModel(name);
  if (setting?.enabled === false) throw new Problem("MODEL_DISABLED", "This model is switched off.");
  if (model) return { name, model, maxMicroUsd: model.maxPrice };
  if (!setting?.passthrough) throw unknownModel;
  return { name, model, maxMicroUsd: microUsd(setting.maxUsd ?? 0) };
}

const unknownModel = new Problem("MODEL_NOT_FOUND", "There is no such model.");
