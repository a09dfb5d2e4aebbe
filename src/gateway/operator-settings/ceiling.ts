// Whether the app's budget has a ceiling, as every isolate knows it: without one no meter asks BUDGET.
import type { Config } from "../../config.ts";
import { askControl } from "./control-reader.ts";
import type { ControlView } from "./control-view.ts";

export async function tellCeiling(env: Env, isSet: boolean): Promise<void> {
  await askControl(env, (control) => control.setCeiling(isSet));
}

/** The operator's ceiling overrides the deployment's settings. */
export function hasCeiling({ budget }: Pick<Config, "budget">, control: Pick<ControlView, "hasCeiling">): boolean {
  return control.hasCeiling ?? (budget.dayMicroUsd !== undefined || budget.monthMicroUsd !== undefined);
}
