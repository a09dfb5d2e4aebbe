// The gateway as this machine serves it: built, started, and built anew after an edit.
import { join } from "node:path";
import type { Miniflare, MiniflareOptions } from "miniflare";
import { readConfig } from "../config.ts";
import { type Bundler, openBundler } from "./bundle.ts";
import { readDevVars, sayUnknown } from "./dev-vars.ts";
import type { ServerLog } from "./log.ts";
import { loadMiniflare, miniflareOptions } from "./serve.ts";
import { readWorkerConfig, type WorkerConfig } from "./worker-config.ts";
import { root } from "./wrangler.ts";

export interface Wanted {
  readonly host: string;
  readonly port: number;
  readonly state: string;
  /** Settings that go before those of .dev.vars. */
  readonly settings: Readonly<Record<string, string>>;
}

interface Prepared {
  readonly options: MiniflareOptions;
  readonly sourceMap: string;
}

export class DevServer {
  readonly #wanted: Wanted;
  readonly #log: ServerLog;
  readonly #bundler: Bundler;
  #miniflare: Miniflare | undefined;
  #served: Prepared | undefined;
  #lastFault = "";
  #lastOfSettings = "";

  /** Resolves once requests are answered. Throws where the source cannot be built, or workerd does not start. */
  static async start(wanted: Wanted, log: ServerLog): Promise<DevServer> {
    const { main } = readWorkerConfig();
    const server = new DevServer(wanted, log, await openBundler(main));
    const preparing = server.#prepare();
    // esbuild is a process of its own: while it builds, Miniflare is loaded.
    loadMiniflare();
    await server.#serve(await preparing);
    return server;
  }

  private constructor(wanted: Wanted, log: ServerLog, bundler: Bundler) {
    this.#wanted = wanted;
    this.#log = log;
    this.#bundler = bundler;
  }

  get hasPage(): boolean {
    return this.#served?.options.workers[0]?.config.assets !== undefined;
  }

  /** A fault is told once, and what was served before is served on. */
  async rebuild(): Promise<void> {
    const begun = performance.now();
    try {
      await this.#change(await this.#prepare());
      this.#lastFault = "";
      this.#log.say({ rebuiltInMs: Math.round(performance.now() - begun) });
    } catch (error) {
      this.#tellFault(error);
    }
  }

  async #change(next: Prepared): Promise<void> {
    const before = this.#served;
    try {
      await this.#serve(next);
    } catch (error) {
      // workerd ended when it was given code that does not start.
      if (before) await this.#serve(before);
      throw error;
    }
  }

  async #serve(prepared: Prepared): Promise<void> {
    const { options, sourceMap } = prepared;
    this.#log.exceptions.follow(sourceMap);
    if (this.#miniflare) {
      await this.#miniflare.setOptions(options);
    } else {
      const { Miniflare } = loadMiniflare();
      this.#miniflare = new Miniflare(options);
      await this.#miniflare.ready;
    }
    this.#served = prepared;
  }

  #tellFault(error: unknown): void {
    const fault = explain(error);
    if (fault !== this.#lastFault) this.#log.say({ fault });
    this.#lastFault = fault;
  }

  /** The gateway starts with wrong ones too, and answers every request with MISCONFIGURED. */
  #tellOfSettings(config: WorkerConfig, own: Readonly<Record<string, string>>): void {
    const reading = readConfig({ ...config.vars, ...own, ...this.#wanted.settings });
    const wrong = reading.ok ? [] : reading.faults.map(({ setting, problem }) => `The setting ${setting}: ${problem}`);
    const unknown = [...sayUnknown(".dev.vars", own), ...sayUnknown("wrangler.toml", config.vars)];
    const told = [...unknown, ...wrong].join("\n");
    if (told && told !== this.#lastOfSettings) this.#log.say({ fault: told });
    this.#lastOfSettings = told;
  }

  async #prepare(): Promise<Prepared> {
    const { host, port, state, settings } = this.#wanted;
    const config = readWorkerConfig();
    const bundle = await this.#bundler.build();
    const own = readDevVars(join(root, ".dev.vars"));
    this.#tellOfSettings(config, own);
    const hear = this.#log.hear.bind(this.#log);
    const served = { host, port, state, code: bundle.code, config, settings: { ...own, ...settings }, hear };
    return { options: miniflareOptions(served), sourceMap: bundle.sourceMap };
  }
}

/** One sentence; of an exception at workerd's start its own log has told. */
export function explain(error: unknown): string {
  const { code, message } = error as Error & { code?: string };
  return code === "ERR_RUNTIME_FAILURE" ? "The Worker does not start." : message;
}
