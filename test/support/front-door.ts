// Talks to the Worker as a client does: through its front door, with the real bindings.
import { createExecutionContext } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { app } from "../../src/app.ts";
import type { SettingName } from "../../src/settings.ts";

/** Where the Worker of the tests is reached. */
export const origin = "https://sluice.test";

export type Settings = Partial<Record<SettingName, string>>;

interface Call {
  readonly headers?: HeadersInit;
  readonly body?: BodyInit;
  /** Settings that differ from those of the tests. */
  readonly settings?: Settings;
}

/** What the network says of a request, as far as a test can. */
export const fromTheNetwork = { colo: "TEST" } as const;

/** One exchange. A redirect is handed back, never followed. */
export function call(method: string, path: string, { headers, body, settings }: Call = {}): Promise<Response> {
  const request = new Request(origin + path, {
    method,
    redirect: "manual",
    cf: fromTheNetwork,
    ...(headers && { headers }),
    ...(body !== undefined && { body }),
  });
  if (!settings) return exports.default.fetch(request);
  return Promise.resolve(app.fetch(request, { ...env, ...settings }, createExecutionContext()));
}
