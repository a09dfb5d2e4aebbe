// The doctor as the operator: the Worker's own selfcheck, a line for each binding.
import { type Asker, sayRefusal } from "./asker.ts";
import { type Finding, fault, leftOut, ok, warning } from "./findings.ts";

interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly ms: number;
  readonly place?: string;
  readonly problem?: string;
}

interface Selfcheck {
  readonly place?: string;
  readonly upstream: string;
  readonly uploads: boolean;
  readonly allowedOrigins: readonly string[];
  readonly checks: readonly Check[];
}

interface Seen {
  readonly findings: Finding[];
  /** Undefined where nobody said. */
  readonly allowedOrigins?: readonly string[];
}

export async function checkOperator(asker: Asker, adminToken: string | undefined): Promise<Seen> {
  if (!adminToken) {
    return {
      findings: [
        leftOut("bindings", "the operator's token is not known here", "Set ADMIN_TOKEN to have them looked at."),
      ],
    };
  }
  const answer = await asker.ask("/admin/selfcheck", { key: adminToken });
  if (answer.status === 401) {
    const todo = "ADMIN_TOKEN here is not the deployment's. npx wrangler secret put ADMIN_TOKEN replaces that one.";
    return { findings: [fault("operator", sayRefusal(answer), todo)] };
  }
  if (answer.status !== 200) {
    return { findings: [fault("bindings", sayRefusal(answer), "npx wrangler tail shows what went wrong.")] };
  }
  const { place, upstream, uploads, allowedOrigins, checks } = answer.json as unknown as Selfcheck;
  const findings = [
    ok("operator", `the token is taken${place ? `, at ${place}` : ""}`),
    ...checks.map((check) => findingOf(check, upstream)),
  ];
  if (!uploads)
    findings.push(
      warning("uploads", "there is no bucket, and no uploads", "Enable R2, and npm run deploy, if you want them."),
    );
  return { findings, allowedOrigins };
}

function findingOf({ name, ok: isOk, ms, place, problem = "" }: Check, upstream: string): Finding {
  const isUpstream = name.startsWith("upstream");
  const where = isUpstream ? upstream : (place ?? "");
  const seen = `${isOk ? "" : `${problem}, `}${ms} ms${where ? `, ${where}` : ""}`;
  return isOk ? ok(name, seen) : fault(name, seen, isUpstream ? upstreamTodo(problem) : bindingTodo(name));
}

function upstreamTodo(problem: string): string {
  if (problem === "refused our key")
    return "npx wrangler secret put UPSTREAM_API_KEY, with a key that the service knows.";
  if (problem === "wants to be paid") return "The account at the model service has no credits: add some there.";
  return "Is UPSTREAM_URL the service's origin, and is the service up?";
}

function bindingTodo(name: string): string {
  const limits = "docs/deploy-and-limits.md says what happens at a limit of the plan.";
  if (name === "IMAGES") return `Jobs go on; results are not kept, and little is reused. ${limits}`;
  if (name === "MEDIA") return `Uploads fail. Is R2 enabled in the account? ${limits}`;
  if (name === "FLOOD") return "Requests go on without the flood shield. Is the binding in wrangler.toml?";
  return `Requests that need this object fail. ${limits}`;
}
