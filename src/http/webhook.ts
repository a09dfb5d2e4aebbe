// One try of a notice: any 2xx within the time is received, anything else is not.
import { limits } from "../contract/limits.ts";

export type Send = (request: Request) => Promise<Response>;

export async function postWebhook(url: string, body: BodyInit, headers: HeadersInit, send: Send): Promise<boolean> {
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), limits.webhook.timeoutMs);
  try {
    const request = new Request(url, { method: "POST", body, headers, redirect: "manual", signal: abort.signal });
    request.headers.set("Content-Type", "application/json");
    const response = await send(request);
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}
