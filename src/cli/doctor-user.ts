// The doctor as a user: a token that is given, one that the app's backend asks for, or a session.
import { type Asker, sayRefusal } from "./asker.ts";
import { type Finding, fault, leftOut, ok } from "./findings.ts";

interface Known {
  readonly token: string | undefined;
  readonly appSecret: string | undefined;
}

export interface User {
  readonly finding: Finding;
  /** Undefined where there is none. */
  readonly key?: string;
}

export async function findUser(asker: Asker, { token, appSecret }: Known): Promise<User> {
  if (token) return checkToken(asker, token, "the one that was given");
  if (appSecret) {
    const answer = await asker.ask("/tokens", { method: "POST", key: appSecret, body: { user: "doctor" } });
    if (answer.status === 200) return checkToken(asker, String(answer.json?.["token"]), "by the app's secret");
    const todo = "APP_SECRET here is not the deployment's. npx wrangler secret put APP_SECRET replaces that one.";
    return { finding: fault("a user's token", sayRefusal(answer), todo) };
  }
  const answer = await asker.ask("/sessions", { method: "POST", body: {} });
  if (answer.status === 200) return checkToken(asker, String(answer.json?.["token"]), "an anonymous session");
  if (answer.status === 403) {
    return { finding: leftOut("a user's token", sayRefusal(answer), "Set APP_SECRET, or TOKEN, a user's own.") };
  }
  return { finding: fault("a user's token", sayRefusal(answer), "npx wrangler tail shows what went wrong.") };
}

async function checkToken(asker: Asker, key: string, how: string): Promise<User> {
  const usage = await asker.ask("/usage", { key });
  if (usage.status === 200) return { finding: ok("a user's token", `${how}, taken in ${usage.ms} ms`), key };
  return { finding: fault("a user's token", sayRefusal(usage), "It was given, and is not taken: npx wrangler tail.") };
}
