// A call of a real process that must succeed, with whatever key it takes.
import type { Server } from "../../support/serve.ts";

export async function exchange<T>(
  server: Pick<Server, "url">,
  method: string,
  path: string,
  key: string,
  body?: unknown,
): Promise<T> {
  const headers = { Authorization: `Bearer ${key}` };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(`${server.url}${path}`, { method, headers, ...sent });
  if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}
