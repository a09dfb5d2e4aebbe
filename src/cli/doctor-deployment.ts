// The doctor at a deployment's address: what the operator, a page and a user meet there, one after the other.
import { Asker, NotReached } from "./asker.ts";
import { checkCors } from "./doctor-cors.ts";
import { checkOperator } from "./doctor-operator.ts";
import { checkLimit } from "./doctor-paid.ts";
import { checkEvents, checkPictures, findModel } from "./doctor-pictures.ts";
import { findUser } from "./doctor-user.ts";
import { type Finding, fault, leftOut, ok } from "./findings.ts";

export interface After {
  /** Without a slash at its end. */
  readonly url: string;
  readonly adminToken: string | undefined;
  readonly appSecret: string | undefined;
  /** A user's own. */
  readonly token: string | undefined;
  readonly upstreamKeys: readonly string[];
  readonly origin: string | undefined;
  readonly model: string | undefined;
  readonly paid: boolean;
}

export async function checkDeployment(after: After): Promise<Finding[]> {
  const { adminToken, appSecret, upstreamKeys } = after;
  const keys = upstreamKeys.map((key) => key.trim()).filter((key) => key !== "" && key !== "none");
  const asker = new Asker(after.url, [...keys, ...[adminToken ?? [], appSecret ?? []].flat()]);
  const findings: Finding[] = [];
  try {
    for await (const finding of checkAll(after, asker)) findings.push(finding);
  } catch (error) {
    if (!(error instanceof NotReached)) throw error;
    findings.push(
      fault("the connection", error.message, "Is the address right? A new one is known everywhere after some seconds."),
    );
  }
  const isEmbedded = findings.some(({ what, seen }) => what === "upstream" && seen.endsWith("embedded"));
  return [...findings, checkCanary(asker, keys.length > 0 || isEmbedded)];
}

async function checkHealth(asker: Asker): Promise<Finding> {
  const answer = await asker.ask("/healthz");
  if (answer.json?.["status"] === "ok") return ok("reached", `${asker.url} in ${answer.ms} ms`);
  if (answer.json?.["code"] !== "MISCONFIGURED") {
    return fault("reached", `${answer.status} at /healthz`, "What answers there is not Sluice.");
  }
  return fault(
    "settings",
    "the Worker refuses its settings",
    "npx wrangler tail names the setting at the next request.",
  );
}

async function* checkAll(after: After, asker: Asker): AsyncGenerator<Finding> {
  const health = await checkHealth(asker);
  yield health;
  if (health.is !== "ok") return;
  const { findings, allowedOrigins } = await checkOperator(asker, after.adminToken);
  yield* findings;
  yield* await checkCors(asker, after.origin, allowedOrigins);
  const user = await findUser(asker, after);
  yield user.finding;
  const { key } = user;
  if (key === undefined) return yield leftOut("pictures", "there is no user to ask as", "See the line above.");
  const found = await findModel(asker, after.model);
  if ("finding" in found) return yield found.finding;
  const { model } = found;
  yield* await checkPictures(asker, key, model);
  yield await checkEvents(asker, key, model);
  if (after.paid) yield await checkLimit(asker, after.appSecret, model);
}

/** In every answer that the doctor had, refusals among them. */
function checkCanary(asker: Asker, isKnown: boolean): Finding {
  const where = [...asker.leaks].join(", ");
  if (where) {
    const todo = "Do not use it: replace the secrets, and report this. docs/security.md says where.";
    return fault("secrets in answers", `a secret came out at ${where}`, todo);
  }
  const seen = `none in ${asker.answers} answers`;
  if (isKnown) return ok("secrets in answers", seen);
  return leftOut(
    "secrets in answers",
    "the key of the model service is not known here",
    "Set UPSTREAM_API_KEY to have it looked for.",
  );
}
