// An endpoint that the operator makes over `/v1` may be opened to users in the same call; else the log says how to open it.

import { describeFaults, nameOfFault, Problem } from "../../errors.ts";
import { tryParseJson } from "../../http/small-body.ts";
import { isObject } from "../../json/is-object.ts";
import type { Call } from "../call.ts";
import { askControl } from "../operator-settings/control-reader.ts";
import type { ModelSwitch } from "../operator-settings/control-view.ts";
import { modelNameSchema } from "../operator-settings/rules.ts";
import { switchSchema } from "./models.ts";

export interface Opening {
  /** Without what is the gateway's alone. */
  readonly body: Uint8Array;
  readonly value: ModelSwitch | undefined;
}

/** What the body of `POST /endpoints` says of users. */
export function readOpening(body: Uint8Array): Opening {
  const { passthrough, maxUsd, ...others } = (tryParseJson(body) ?? {}) as Record<string, unknown>;
  if (passthrough === undefined && maxUsd === undefined) return { body, value: undefined };
  const { data: value, error } = switchSchema.safeParse({ passthrough, maxUsd });
  if (error) throw new Problem("INVALID_REQUEST", describeFaults(error.issues));
  return { body: new TextEncoder().encode(JSON.stringify(others)), value };
}

/** The endpoint is there whatever becomes of this. */
export async function openMade({ env }: Call, made: Response, value: ModelSwitch | undefined): Promise<Response> {
  const bytes = new Uint8Array(await made.arrayBuffer());
  const endpoint = tryParseJson(bytes);
  const { data: id } = modelNameSchema.safeParse(isObject(endpoint) ? endpoint["id"] : undefined);
  const asItCame = new Response(bytes.byteLength > 0 ? bytes : null, made);
  if (!value?.passthrough) {
    if (id !== undefined) tellHowToOpen(id);
    return asItCame;
  }
  if (!isObject(endpoint)) throw new Problem("UPSTREAM_BAD_JSON", `${unopened} is no JSON object`);
  if (id === undefined) throw new Problem("UPSTREAM_BAD_ANSWER", `${unopened} names no endpoint's id`);
  try {
    await askControl(env, (control) => control.setModel(id, value));
    return Response.json({ ...endpoint, ...value }, made);
  } catch (error) {
    console.error(JSON.stringify({ endpoint: id, problem: "was not opened", error: nameOfFault(error) }));
    tellHowToOpen(id);
    return asItCame;
  }
}

const unopened = "no endpoint was opened to users: what the management interface answered";

function tellHowToOpen(id: string): void {
  const open = `PUT /admin/models/${id} {"passthrough": true, "maxUsd": …}`;
  console.log(JSON.stringify({ endpoint: id, users: "get 404 until the operator opens it", open }));
}
