// Refuses unknown names of plans and models in the operator's requests. A misspelt name would otherwise only be noticed
// by users.
import { Problem } from "../../errors.ts";
import { type Kind, models } from "../../models/index.ts";
import type { Call } from "../call.ts";
import { readControl, readControlAnew } from "./control-reader.ts";
import { ControlView } from "./control-view.ts";
import { plansWithoutOperator } from "./plans.ts";
import { modelsOf, type Rule } from "./rules.ts";

/** The names that a request says, by where it says them. */
interface SaidNames {
  readonly plan?: string | null | undefined;
  readonly models?: readonly string[] | undefined;
  readonly rules?: readonly Rule[] | null | undefined;
}

/** Answers 400 with what there is, where a name is not known. */
export async function demandKnown(call: Call, said: SaidNames): Promise<void> {
  const { local } = call.config;
  if (!faultOf(said, nothingOfTheOperators, local)) return;
  if (!faultOf(said, await readControl(call), local)) return;
  const fault = faultOf(said, await readControlAnew(call), local);
  if (fault) throw new Problem("INVALID_REQUEST", fault);
}

/** Who names what is built in does not wait for CONTROL. */
const nothingOfTheOperators = new ControlView();

/** What is wrong with the first name that is not known. */
function faultOf({ plan, models: named = [], rules }: SaidNames, control: ControlView, local: boolean) {
  const plans = new Set([...Object.keys(plansWithoutOperator(local)), ...control.plans.keys()]);
  if (plan != null && !plans.has(plan)) return unknownName("plan", plan, plans);
  const served = new Set([...models.map(({ id }) => id), ...openedBy(control)]);
  const model = named.find((name) => !served.has(name));
  if (model !== undefined) return unknownName("models", model, served);
  const counted = new Set([...kinds, ...served]);
  const scope = rules?.flatMap((rule) => modelsOf(rule) ?? []).find((name) => !counted.has(name));
  return scope === undefined ? undefined : unknownName("rules", scope, counted);
}

const kinds = new Set<Kind>(models.map(({ kind }) => kind));

/** The endpoints that the operator opened beside the catalog. */
function openedBy(control: ControlView): string[] {
  return [...control.models].filter(([, { passthrough }]) => passthrough).map(([name]) => name);
}

export function unknownName(at: string, name: string, known: Iterable<string>): string {
  return `${at}: "${name}" is not known; there are ${[...known].join(", ")}`;
}
