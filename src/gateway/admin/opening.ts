// An endpoint that the operator makes over `/v1` may be opened to users in the same call; else the log says how to open it.
import { describeFaults, nameOfFault, Problem } from "../../errors.ts";
import { parseJson } from "../../http/small-body.ts";
import type { Call } from "../call.ts";
import { askControl } from "../operator-settings/control-reader.ts";
import type { ModelSwitch } from "../operator-settings/control-view.ts";
import { switchSchema } from "./models.ts";

export interface Opening {
  /** Without what is the gateway's alone. */
  readonly body: Uint8Array;
  readonly value: ModelSwitch | undefined;
}

/** What the body of `POST /endpoints` says of users. */
export function readOpening(body: Uint8Array): Opening {
  const { passthrough, maxUsd, ...others } = (parseJson(body) ?? {}) as Record<string, unknown>;
  if (passthrough === undefined && maxUsd === undefined) return { body, value: undefined };
  const { data: value, error } = switchSchema.safeParse({ passthrough, maxUsd });
  if (error) throw new Problem("INVALID_REQUEST", describeFaults(error.issues));
  return { body: new TextEncoder().encode(JSON.stringify(others)), value };
}

/** The endpoint is there whatever becomes of this. */
export async function openMade({ env }: Call, made: Response, value: ModelSwitch | undefined): Promise<Response> {
  const endpoint = await made.json<{ id?: unknown }>();
  const id = String(endpoint.id);
  try {
    if (value?.passthrough) {
      await askControl(env, (control) => control.setModel(id, value));
      return Response.json({ ...endpoint, ...value }, made);
    }
  } catch (error) {
    console.error(JSON.stringify({ endpoint: id, problem: "was not opened", error: nameOfFault(error) }));
  }
  const open = `PUT /admin/models/${id} {"passthrough": true, "maxUsd": …}`;
  console.log(JSON.stringify({ endpoint: id, users: "get 404 until the operator opens it", open }));
  return Response.json(endpoint, made);
}
