// The doctor as a user who makes pictures: one twice, its file twice, and another whose events are followed.
import { type Answer, type Asker, sayRefusal } from "./asker.ts";
import { type Finding, fault, leftOut, ok, warning } from "./findings.ts";

interface CatalogModel {
  readonly id: string;
  readonly kind: string;
  readonly pricing: { readonly maxUsd: number };
  readonly input: { readonly properties?: Record<string, unknown>; readonly required?: readonly string[] };
}

const upstreamTodo = "The lines above on the model service say more. npx wrangler tail shows the reason.";
/** Whoever reads an event this long before the end was not kept waiting. */
const aheadMs = 100;
const cacheTries = { count: 4, pauseMs: 500 };

/** The one that was asked for, or the cheapest that makes a picture of a prompt and a seed. */
export async function findModel(asker: Asker, asked?: string): Promise<{ model: string } | { finding: Finding }> {
  if (asked !== undefined) return { model: asked };
  const answer = await asker.ask("/models");
  const models = (answer.json?.["models"] ?? []) as CatalogModel[];
  const [cheapest] = models
    .filter(({ kind, input }) => kind === "image" && "seed" in (input.properties ?? {}) && takesPrompt(input))
    .toSorted((left, right) => left.pricing.maxUsd - right.pricing.maxUsd);
  if (cheapest) return { model: cheapest.id };
  return { finding: fault("the catalog", sayRefusal(answer), "GET /models names no model of pictures.") };
}

function takesPrompt({ required = [] }: CatalogModel["input"]): boolean {
  return required.every((name) => name === "prompt");
}

export function inputOf(seed: number) {
  return { input: { prompt: "a lighthouse at dusk", seed } };
}

/** Nobody has asked for it before. */
export function newSeed(): number {
  return Math.floor(Math.random() * 2 ** 31);
}

export async function checkPictures(asker: Asker, key: string, model: string): Promise<Finding[]> {
  const seeded = { method: "POST", key, body: inputOf(newSeed()) };
  const first = await asker.ask(`/v2/${model}/runsync`, seeded);
  if (first.json?.["status"] !== "COMPLETED") {
    const status = first.status === 200 ? `${String(first.json?.["status"])} after ${first.ms} ms` : sayRefusal(first);
    return [fault("a picture", status, upstreamTodo)];
  }
  const again = await asker.ask(`/v2/${model}/runsync`, seeded);
  const made = ok("a picture", `${model}, ${first.ms} ms, X-Cost ${first.headers.get("X-Cost") ?? "not said"}`);
  return [made, sayReuse(again), ...(await checkFile(asker, again))];
}

function sayReuse(again: Answer): Finding {
  const cache = again.headers.get("X-Cache");
  if (cache === "HIT") return ok("the same picture", `HIT, ${again.ms} ms`);
  if (again.status !== 200) return fault("the same picture", sayRefusal(again), upstreamTodo);
  if (cache === "BYPASS" || cache === null) {
    return warning(
      "the same picture",
      `made again: ${cache ?? "no X-Cache"}`,
      "IMAGE_REUSE is never: each picture is paid for anew.",
    );
  }
  return fault(
    "the same picture",
    `made again: ${cache}`,
    "KV kept nothing: see IMAGES above. npx wrangler tail shows the reason.",
  );
}

/** Whichever cache has it: the Worker's, which says X-Cache, or the one before it. */
async function checkFile(asker: Asker, { text }: Answer): Promise<Finding[]> {
  const [path] = /\/images\/[\w-]+(\.\w+)?/.exec(text) ?? [];
  if (path === undefined)
    return [leftOut("its file", "the answer has no link of the gateway's", "IMAGE_LINKS is upstream.")];
  const first = await asker.ask(path);
  if (first.status !== 200)
    return [fault("its file", sayRefusal(first), "The model service's file cannot be fetched.")];
  const found = ok("its file", `${first.headers.get("Content-Type")}, ${first.ms} ms`);
  for (let tried = 0; tried < cacheTries.count; tried++) {
    const again = await asker.ask(path);
    if (isHit(again)) return [found, ok("the same file", `HIT, ${again.ms} ms`)];
    // The cache is filled beside the answer.
    await pause(cacheTries.pauseMs);
  }
  const todo = "Each look fetches it from the model service. Is [cache] enabled in wrangler.toml?";
  return [found, fault("the same file", "no cache had it", todo)];
}

function isHit({ headers }: Answer): boolean {
  return [headers.get("X-Cache"), headers.get("CF-Cache-Status")].includes("HIT");
}

/** What stands between may hold a stream back until it ends: then all events come at once. */
export async function checkEvents(asker: Asker, key: string, model: string): Promise<Finding> {
  const submitted = await asker.ask(`/v2/${model}/run`, { method: "POST", key, body: inputOf(newSeed()) });
  const id = submitted.json?.["id"];
  if (typeof id !== "string") return fault("events", sayRefusal(submitted), upstreamTodo);
  const path = `/v2/${model}/events/${id}`;
  const begunAt = performance.now();
  const response = await asker.open(path, { key });
  const sinceMs = () => Math.round(performance.now() - begunAt);
  let firstMs: number | undefined;
  let text = "";
  const decoder = new TextDecoder();
  try {
    for await (const piece of response.body ?? []) {
      firstMs ??= sinceMs();
      asker.look(path, piece);
      text += decoder.decode(piece, { stream: true });
    }
  } catch {
    return fault("events", `broke off after ${sinceMs()} ms`, "Something in between ends streams.");
  }
  const endMs = sinceMs();
  if (firstMs === undefined || !text.includes("event: "))
    return fault("events", `${response.status}, no event came`, upstreamTodo);
  const seen = `the first after ${firstMs} ms, the last after ${endMs} ms`;
  if (endMs - firstMs >= aheadMs) return ok("events", seen);
  if (!text.includes("event: status", text.indexOf("event: status") + 1))
    return ok("events", `${seen}: the job was done at once`);
  return fault(
    "events",
    seen,
    "They came all at once: something in between holds streams back. Switch its buffering off.",
  );
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
