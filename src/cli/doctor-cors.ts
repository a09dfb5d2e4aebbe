// The doctor as a page: whether one that is to call may, and whether a foreign one may not.
import type { Asker } from "./asker.ts";
import { type Finding, fault, ok, warning } from "./findings.ts";
import { readWorkerConfig } from "./worker-config.ts";

const foreign = "https://foreign.invalid";
const path = "/models";

export async function checkCors(
  asker: Asker,
  origin: string | undefined,
  told?: readonly string[],
): Promise<Finding[]> {
  const allowed = told ?? String(readWorkerConfig().vars["ALLOWED_ORIGINS"] ?? "").split(",");
  const page = origin ?? exampleOf(allowed.find((rule) => rule.trim() !== "")?.trim());
  const mayAny = await mayCall(asker, foreign);
  const ofForeign = mayAny
    ? warning(
        "a foreign page",
        "may call",
        "ALLOWED_ORIGINS is *: name the origins of your pages, unless this is meant.",
      )
    : ok("a foreign page", "may not call");
  if (page !== undefined) return [await checkPage(asker, page), ofForeign];
  // The gateway may have other settings than these files.
  if (mayAny) return [ofForeign];
  const todo = "Set ALLOWED_ORIGINS, if an app's page is to call.";
  return [warning("a page's call", "no page of another origin may call", todo), ofForeign];
}

async function checkPage(asker: Asker, page: string): Promise<Finding> {
  if (await mayCall(asker, page)) return ok("a page's call", `${page} may call`);
  const todo = `Add ${page} to ALLOWED_ORIGINS in wrangler.toml, and npm run deploy.`;
  return fault("a page's call", `${page} may not call`, todo);
}

/** As a browser finds it out: by the preflight, and again by the answer. */
async function mayCall(asker: Asker, origin: string): Promise<boolean> {
  const asked = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
  };
  const preflight = await asker.ask(path, { method: "OPTIONS", headers: { Origin: origin, ...asked } });
  const answer = await asker.ask(path, { headers: { Origin: origin } });
  return [preflight, answer].every(({ headers }) =>
    ["*", origin].includes(headers.get("Access-Control-Allow-Origin") ?? ""),
  );
}

/** A page that the rule lets in. */
function exampleOf(rule: string | undefined): string | undefined {
  return rule === "*" ? "https://app.example.com" : rule?.replace("://*.", "://www.");
}
