// Delivers a client's webhook: signed as standardwebhooks.com specifies, and only to public hosts.
import { postWebhook, type Send } from "../../http/webhook.ts";
import { refuseTarget } from "../../http/webhook-target.ts";

const encoder = new TextEncoder();
const secretPrefix = "whsec_";

export interface ClientWebhook {
  /** The same at every try, so that a receiver knows a repetition. */
  readonly id: string;
  readonly url: string;
  readonly body: Uint8Array;
}

export interface DeliveryDeps {
  /** Newest first. Each of them signs, so that a receiver can rotate its secret at any time. */
  readonly secrets: readonly string[];
  /** Hosts that are allowed though they are not public. */
  readonly hosts: readonly string[];
  readonly send: Send;
  readonly now: number;
}

export async function deliverWebhook({ id, url, body }: ClientWebhook, deps: DeliveryDeps): Promise<boolean> {
  const refused = refuseTarget(url, deps.hosts);
  if (refused) {
    console.warn(JSON.stringify({ webhook: id, problem: refused }));
    return false;
  }
  const timestamp = String(Math.floor(deps.now / 1000));
  const signatures = await Promise.all(deps.secrets.map((secret) => sign(secret, id, timestamp, body)));
  const headers = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
  return postWebhook(url, body, headers, deps.send);
}

async function sign(secret: string, id: string, timestamp: string, body: Uint8Array): Promise<string> {
  const raw = Uint8Array.from(atob(secret.slice(secretPrefix.length)), (character) => character.charCodeAt(0));
  const key = await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const head = encoder.encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(head.byteLength + body.byteLength);
  signed.set(head);
  signed.set(body, head.byteLength);
  const mac = new Uint8Array(await crypto.subtle.sign("HMAC", key, signed));
  return `v1,${btoa(String.fromCharCode(...mac))}`;
}
