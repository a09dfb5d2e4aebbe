// Serves the gateway on this machine: builds it, starts it, and builds it again after an edit.
import type { Miniflare, MiniflareOptions } from "miniflare";
import { readConfig } from "../config.ts";
import { buildAssets } from "./assets.ts";
import type { Bundle, Bundler } from "./bundle.ts";
import { readDevVars, sayUnknown } from "./dev-vars.ts";
import { keepBundle, readKept } from "./kept-bundle.ts";
import type { ServerLog } from "./log.ts";
import { stateOfFiles } from "./rebuilding.ts";
import { loadMiniflare, miniflareOptions } from "./serve.ts";
import { readWorkerConfig, type WorkerConfig } from "./worker-config.ts";

export interface Wanted {
  readonly host: string;
  readonly port: number;
  readonly state: string;
  /** The file with the settings of this machine. */
  readonly devVars: string;
  /** Settings that override those of .dev.vars. */
  readonly settings: Readonly<Record<string, string>>;
}

const warnAfterMs = 2_000;

interface Prepared {
  readonly options: MiniflareOptions;
  readonly bundle: Bundle;
  /** What a client can tell apart. */
  readonly seen: string;
}

export class DevServer {
  readonly #wanted: Wanted;
  readonly #log: ServerLog;
  #bundler: Bundler | undefined;
  #miniflare: Miniflare | undefined;
  #served: Prepared | undefined;
  /** What did not start: an editor that writes a file twice would have it tried and told of twice. */
  #broken: { readonly seen: string; readonly error: unknown } | undefined;
  #lastFault = "";
  #lastOfSettings = "";
  #isMisconfigured = false;
  #hasAppSecret = false;

  /** Resolves once requests are answered. Throws where the source cannot be built, or workerd does not start. */
  static async start(wanted: Wanted, log: ServerLog): Promise<DevServer> {
    const server = new DevServer(wanted, log);
    const preparing = server.#prepare(readKept(wanted.state));
    // esbuild is a process of its own: while it builds, Miniflare is loaded.
    loadMiniflare();
    await server.#serve(await preparing);
    return server;
  }

  private constructor(wanted: Wanted, log: ServerLog) {
    this.#wanted = wanted;
    this.#log = log;
  }

  get hasPage(): boolean {
    return this.#served?.options.workers[0]?.config.assets !== undefined;
  }

  /** Which settings are wrong is told already. */
  get isMisconfigured(): boolean {
    return this.#isMisconfigured;
  }

  get hasAppSecret(): boolean {
    return this.#hasAppSecret;
  }

  /** Builds what was served as it was kept: no mistake in keeping it lasts, and the first edit finds a bundler. */
  async verify(): Promise<void> {
    if (!this.#bundler) await this.#rebuild("tell what differs");
  }

  /** Prints a fault once; the last good build is served on. */
  async rebuild(): Promise<void> {
    await this.#rebuild("tell");
  }

  async #rebuild(how: "tell" | "tell what differs"): Promise<void> {
    const begun = performance.now();
    try {
      const isSame = await this.#anew();
      const rebuiltInMs = Math.round(performance.now() - begun);
      if (how === "tell" || !isSame) this.#log.say({ rebuiltInMs, isSame });
    } catch (error) {
      this.#tellFault(error);
    }
  }

  /** Whether all is as before. Then nothing is served anew, since that ends the calls under way. */
  async #anew(): Promise<boolean> {
    const before = this.#served;
    const next = await this.#prepare();
    if (next.seen === this.#broken?.seen) throw this.#broken.error;
    const isSame = next.seen === before?.seen;
    if (isSame) this.#become(next);
    else await this.#change(next, before);
    this.#broken = undefined;
    this.#lastFault = "";
    return isSame;
  }

  async #change(next: Prepared, before: Prepared | undefined): Promise<void> {
    try {
      await this.#serve(next);
    } catch (error) {
      this.#broken = { seen: next.seen, error };
      // workerd ended when it was given code that does not start.
      if (before) await this.#serve(before);
      throw error;
    }
  }

  async #serve(prepared: Prepared): Promise<void> {
    // Code that does not start says so by its places.
    this.#log.exceptions.follow(prepared.bundle.sourceMap);
    if (this.#miniflare) {
      await this.#miniflare.setOptions(prepared.options);
    } else {
      const { Miniflare } = loadMiniflare();
      this.#miniflare = new Miniflare(prepared.options);
      await this.#miniflare.ready;
    }
    this.#become(prepared);
  }

  #become(prepared: Prepared): void {
    this.#log.exceptions.follow(prepared.bundle.sourceMap);
    this.#served = prepared;
    keepBundle(this.#wanted.state, prepared.bundle);
  }

  #tellFault(error: unknown): void {
    const fault = explain(error);
    if (fault !== this.#lastFault) this.#log.say({ fault });
    this.#lastFault = fault;
  }

  /** The gateway starts with wrong ones too, and answers every request with MISCONFIGURED. */
  #tellOfSettings(config: WorkerConfig, own: Readonly<Record<string, string>>, unread: readonly string[]): void {
    const reading = readConfig({ ...config.vars, ...own, ...this.#wanted.settings });
    this.#isMisconfigured = !reading.ok;
    this.#hasAppSecret = reading.ok && reading.config.appSecret !== undefined;
    const wrong = reading.ok ? [] : reading.faults.map(({ setting, problem }) => `The setting ${setting}: ${problem}`);
    const unknown = [...sayUnknown(".dev.vars", own), ...sayUnknown("wrangler.toml", config.vars)];
    const told = [...unread, ...unknown, ...wrong].join("\n");
    if (told && told !== this.#lastOfSettings) this.#log.say({ fault: told });
    this.#lastOfSettings = told;
  }

  async #prepare(kept?: Bundle): Promise<Prepared> {
    const { host, port, state, devVars, settings } = this.#wanted;
    const config = readWorkerConfig();
    await buildAssets();
    const bundle = kept ?? (await this.#build(config));
    const { set: own, unread } = readDevVars(devVars);
    this.#tellOfSettings(config, own, unread);
    const hear = this.#log.hear.bind(this.#log);
    // Ctrl-C is heard by workerd too, and Miniflare may tell of its end a moment before this process ends.
    const warn = (fault: string) => setTimeout(() => this.#log.say({ fault }), warnAfterMs).unref();
    const served = { host, port, state, code: bundle.code, config, settings: { ...own, ...settings }, hear, warn };
    const files = config.assets ? stateOfFiles(config.assets.directory) : "";
    const seen = JSON.stringify([bundle.code, config, served.settings, files]);
    return { options: miniflareOptions(served), bundle, seen };
  }

  async #build({ main }: WorkerConfig): Promise<Bundle> {
    const { openBundler } = await import("./bundle.ts");
    this.#bundler ??= await openBundler(main);
    return this.#bundler.build();
  }
}

/** One sentence; of an exception at workerd's start its own log has told. */
export function explain(error: unknown): string {
  const { code, message } = error as Error & { code?: string };
  return code === "ERR_RUNTIME_FAILURE" ? "The Worker does not start." : message;
}
