// Random operations on two accounts, beside a model: the same answers, no dangling reference, the same bill to the micro-USD.
import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { afterEach, expect, it, vi } from "vitest";
import { catalogueName } from "../../../src/platform/management/account-calls.ts";
import { amount } from "../../support/amount.ts";
import { emptyStorage } from "../../support/empty-storage.ts";
import { type AccountName, type Json, send } from "./management-client.ts";
import { type Gpu, gpus, Model } from "./model.ts";

const epoch = Date.UTC(2050, 2, 31, 22, 50);
const minute = 60_000;

afterEach(async () => {
  vi.useRealTimers();
  await emptyStorage();
});

/** Which of all that was ever made; none where it is left out. */
const pick = fc.nat({ max: 11 });
const maybe = fc.option(pick, { nil: undefined, freq: 2 });
const gpu = fc.constantFrom(...(Object.keys(gpus) as Gpu[]));
const as = fc.constantFrom<AccountName>("north", "south");
const command = fc.oneof(
  fc.record({ do: fc.constant("auth" as const), as }),
  fc.record({ do: fc.constant("template" as const), as, auth: maybe, public: fc.boolean(), serverless: fc.boolean() }),
  fc.record({ do: fc.constant("volume" as const), as }),
  fc.record({
    do: fc.constant("pod" as const),
    as,
    template: maybe,
    volume: maybe,
    auth: maybe,
    gpu,
    locked: fc.boolean(),
  }),
  fc.record({ do: fc.constant("endpoint" as const), as, template: pick, volume: maybe, gpu }),
  fc.record({ do: fc.constant("publish" as const), as, of: pick, public: fc.boolean() }),
  fc.record({ do: fc.constant("grow" as const), as, of: pick, by: fc.integer({ min: -5, max: 50 }) }),
  fc.record({ do: fc.constant("regpu" as const), as, of: pick, gpu }),
  fc.record({
    do: fc.constant("act" as const),
    as,
    of: pick,
    event: fc.constantFrom("start", "stop", "restart", "reset"),
  }),
  fc.record({
    do: fc.constant("work" as const),
    as,
    of: pick,
    worker: fc.constantFrom("w1", "w2"),
    ms: fc.nat(90 * minute),
  }),
  fc.record({
    do: fc.constant("delete" as const),
    as,
    of: pick,
    what: fc.constantFrom("auths", "templates", "volumes", "pods", "endpoints"),
  }),
  fc.record({ do: fc.constant("ring" as const), as }),
  fc.record({ do: fc.constant("pass" as const), ms: fc.nat(150 * minute) }),
  fc.record({
    do: fc.constant("evict" as const),
    what: fc.constantFrom("north", "south", catalogueName, "queue"),
    of: pick,
  }),
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

const paths = {
  auths: "containerregistryauth",
  templates: "templates",
  volumes: "networkvolumes",
  pods: "pods",
  endpoints: "endpoints",
} as const;
type Resource = keyof typeof paths;

/** One that does not run has nothing to lose. */
async function evict(object: DurableObjectStub): Promise<void> {
  await evictDurableObject(object).catch((error: Error) => {
    if (!/not currently running/.test(error.message)) throw error;
  });
}

class Run {
  readonly model = new Model();
  /** All ids that ever were, whosever, deleted or not. */
  readonly made: Record<Resource, { as: AccountName; id: string }[]> = {
    auths: [],
    templates: [],
    volumes: [],
    pods: [],
    endpoints: [],
  };
  #count = 0;

  #id(of: Resource, index: number): string;
  #id(of: Resource, index: number | undefined): string | undefined;
  #id(of: Resource, index: number | undefined): string | undefined {
    const all = this.made[of];
    return index === undefined ? undefined : (all[index % Math.max(1, all.length)]?.id ?? "none");
  }

  async #expect(as: AccountName, method: string, path: string, status: number, body?: unknown): Promise<Json> {
    const answer = await send(as, method, `/v1/${path}`, body);
    const told = `${as} ${method} ${path} ${JSON.stringify(body)}: ${answer.text}`;
    expect(answer.status, told).toBe(status);
    return answer.json as Json;
  }

  async #create(of: Resource, as: AccountName, status: number, body: object): Promise<string | undefined> {
    const made = await this.#expect(as, "POST", paths[of], status, body);
    if (status >= 300) return undefined;
    this.made[of].push({ as, id: made.id });
    return made.id;
  }

  async step(command: Command): Promise<void> {
    const name = `n${++this.#count}`;
    if (command.do === "pass") return this.#pass(command.ms);
    if (command.do === "evict") return this.#evict(command.what, command.of);
    const { as } = command;
    if (command.do === "ring") return void (await runDurableObjectAlarm(env.ACCOUNT.getByName(as)));
    const own = this.model.books[as];
    switch (command.do) {
      case "auth": {
        const id = await this.#create("auths", as, 200, { name, username: "u", password: "p" });
        if (id) own.auths.add(id);
        return;
      }
      case "template": {
        const auth = this.#id("auths", command.auth);
        const ok = auth === undefined || own.auths.has(auth);
        const body = {
          name,
          imageName: "i",
          isPublic: command.public,
          isServerless: command.serverless,
          containerRegistryAuthId: auth,
        };
        const id = await this.#create("templates", as, ok ? 200 : 400, body);
        if (id) own.templates.set(id, { public: command.public, serverless: command.serverless, auth });
        return;
      }
      case "volume": {
        const id = await this.#create("volumes", as, 200, { name, size: 10, dataCenterId: "EU-RO-1" });
        if (id) own.volumes.set(id, { size: 10 });
        return;
      }
      case "pod":
        return this.#pod(command);
      case "endpoint": {
        const [template, volume] = [this.#id("templates", command.template), this.#id("volumes", command.volume)];
        const fits = this.model.mayUse(as, template) && this.model.fits(template, true);
        const ok = fits && (volume === undefined || own.volumes.has(volume));
        const body = { templateId: template, networkVolumeId: volume, gpuTypeIds: [command.gpu] };
        const id = await this.#create("endpoints", as, ok ? 200 : 400, body);
        if (id) own.endpoints.set(id, { template, volume, gpu: command.gpu });
        return;
      }
      case "publish": {
        const id = this.#id("templates", command.of);
        const known = own.templates.get(id);
        await this.#expect(as, "PATCH", `templates/${id}`, known ? 200 : 404, { isPublic: command.public });
        if (known) known.public = command.public;
        return;
      }
      case "grow": {
        const id = this.#id("volumes", command.of);
        const known = own.volumes.get(id);
        const size = (known?.size ?? 10) + command.by;
        const status = known ? (size >= known.size ? 200 : 400) : 404;
        await this.#expect(as, "PATCH", `networkvolumes/${id}`, status, { size: Math.max(0, size) });
        if (known && status === 200) known.size = size;
        return;
      }
      case "regpu": {
        const id = this.#id("endpoints", command.of);
        const known = own.endpoints.get(id);
        await this.#expect(as, "PATCH", `endpoints/${id}`, known ? 200 : 404, { gpuTypeIds: [command.gpu] });
        if (known) known.gpu = command.gpu;
        return;
      }
      case "act": {
        const id = this.#id("pods", command.of);
        const known = own.pods.get(id);
        const locked = known?.locked && (command.event === "stop" || command.event === "reset");
        const wrong = known?.status === "EXITED" && command.event === "restart";
        await this.#expect(as, "POST", `pods/${id}/${command.event}`, known ? (locked || wrong ? 409 : 200) : 404);
        if (!known || locked || wrong) return;
        if (command.event === "stop") known.status = "EXITED";
        if (command.event === "start") known.status = "RUNNING";
        return;
      }
      case "work":
        return this.#work(as, this.#id("endpoints", command.of), command.worker, command.ms);
      case "delete":
        return this.#delete(as, command.what as Resource, this.#id(command.what as Resource, command.of));
    }
  }

  async #pod({ as, gpu, locked, ...command }: Extract<Command, { do: "pod" }>): Promise<void> {
    const own = this.model.books[as];
    const template = this.#id("templates", command.template);
    const [volume, auth] = [this.#id("volumes", command.volume), this.#id("auths", command.auth)];
    const refersWell =
      (template === undefined || (this.model.mayUse(as, template) && this.model.fits(template, false))) &&
      (volume === undefined || own.volumes.has(volume)) &&
      (auth === undefined || own.auths.has(auth));
    const references = { templateId: template, networkVolumeId: volume, containerRegistryAuthId: auth };
    const body = { imageName: "i", locked, gpuTypeIds: [gpu], ...references };
    const id = await this.#create("pods", as, refersWell ? 201 : 400, body);
    const inherited = auth ?? (template === undefined ? undefined : own.templates.get(template)?.auth);
    if (id) own.pods.set(id, { status: "RUNNING", locked, gpu, template, volume, auth: inherited });
  }

  async #work(as: AccountName, id: string, worker: string, ms: number): Promise<void> {
    const known = this.model.books[as].endpoints.get(id);
    const body = { input: {}, policy: { executionTimeout: 24 * 60 * minute } };
    const submitted = await send(as, "POST", `/v2/${id}/run`, body);
    expect(submitted.status).toBe(known ? 200 : 404);
    if (!known) return;
    await send(as, "GET", `/v2/${id}/job-take/${worker}`);
    const from = Date.now();
    this.#pass(ms);
    const job = (submitted.json as Json).id;
    expect((await send(as, "POST", `/v2/${id}/job-done/${worker}/${job}`, { output: 1 })).status).toBe(200);
    this.model.ran(as, "endpoints", `${id} ${worker}`, gpus[known.gpu].worker, from, Date.now());
  }

  async #delete(as: AccountName, what: Resource, id: string): Promise<void> {
    const own = this.model.books[as];
    const held = {
      auths: () => this.model.isNamed(as, id),
      templates: () => this.model.isUsed(as, id),
      volumes: () => this.model.isAttached(as, id),
      pods: () => false,
      endpoints: () => false,
    };
    const status = own[what].has(id) ? (held[what]() ? 409 : 204) : 404;
    await this.#expect(as, "DELETE", `${paths[what]}/${id}`, status);
    if (status === 204) own[what].delete(id);
  }

  #pass(ms: number): void {
    const from = Date.now();
    vi.setSystemTime(from + ms);
    this.model.advance(from, from + ms);
  }

  async #evict(what: string, of: number): Promise<void> {
    if (what !== "queue") return evict(env.ACCOUNT.getByName(what));
    const endpoint = this.made.endpoints[of % Math.max(1, this.made.endpoints.length)];
    if (endpoint) await evict(env.ENDPOINT_QUEUE.getByName(`${endpoint.as}/${endpoint.id}`));
  }

  /** What the accounts say at the end, against the model. */
  async settle(): Promise<void> {
    this.#pass(minute);
    for (const { as, id } of this.made.endpoints)
      await runDurableObjectAlarm(env.ENDPOINT_QUEUE.getByName(`${as}/${id}`));
    for (const as of ["north", "south"] as const) {
      await this.#compareRecords(as);
      await this.#compareBills(as);
    }
  }

  async #compareRecords(as: AccountName): Promise<void> {
    const own = this.model.books[as];
    const query = { templates: "?includeEndpointBoundTemplates=true&includePublicTemplates=true" };
    for (const what of Object.keys(paths) as Resource[]) {
      const path = `${paths[what]}${what === "templates" ? query.templates : ""}`;
      const listed = await this.#expect(as, "GET", path, 200);
      const public_ = what === "templates" ? this.made.templates.filter(({ id }) => this.model.mayUse(as, id)) : [];
      const expected = what === "templates" ? public_.map(({ id }) => id) : [...own[what].keys()];
      const found = (listed as unknown as Json[]).map(({ id }) => id);
      expect(found.sort(), `${as} ${what}`).toEqual(expected.sort());
    }
    const records = [...["pods", "endpoints", "templates"]].map((path) => this.#expect(as, "GET", path, 200));
    for (const record of (await Promise.all(records)).flatMap((list) => list as unknown as Json[])) {
      await this.#follow(as, record);
    }
  }

  /** Whatever a record refers to is there, but for what others took back: of that it has a copy. */
  async #follow(as: AccountName, record: Json): Promise<void> {
    const flags = "?includeEndpointBoundTemplates=true";
    const used = record["templateId"];
    const isOwn = this.made.templates.some((made) => made.as === as && made.id === used);
    const references: [unknown, string, string][] = [
      [isOwn ? used : undefined, "templates", flags],
      [record["networkVolumeId"], "networkvolumes", ""],
      [record["containerRegistryAuthId"], "containerregistryauth", ""],
    ];
    for (const [id, path, query] of references) {
      if (id !== undefined) await this.#expect(as, "GET", `${path}/${id}${query}`, 200);
    }
  }

  async #compareBills(as: AccountName): Promise<void> {
    for (const kind of ["pods", "endpoints", "networkvolumes"] as const) {
      const { microUsd, ms } = this.model.owed(as, kind);
      for (const bucketSize of ["hour", "month"]) {
        const bill = await this.#expect(
          as,
          "GET",
          `billing/${kind}?bucketSize=${bucketSize}&startTime=2050-01-01T00:00:00Z`,
          200,
        );
        const records = bill as unknown as { amount: number; timeBilledMs?: number }[];
        const micros = records.reduce((sum, { amount }) => sum + Math.round(amount * 1e6), 0);
        expect(micros, `${as} ${kind} by ${bucketSize}`).toBe(microUsd);
        if (kind === "networkvolumes") continue;
        expect(records.reduce((sum, { timeBilledMs = 0 }) => sum + timeBilledMs, 0)).toBe(ms);
      }
    }
  }
}

it("holds what the model holds, and bills what its clock says", async () => {
  const commands = fc.array(command, { minLength: 25, maxLength: 60, size: "max" });
  await fc.assert(
    fc.asyncProperty(commands, async (commands) => {
      vi.useFakeTimers({ toFake: ["Date"], now: epoch });
      await emptyStorage();
      const run = new Run();
      for (const command of commands) await run.step(command);
      await run.settle();
    }),
    { numRuns: amount(30), endOnFailure: true },
  );
});
