// The built Worker in a real process of its own, with the tests' settings.
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { guardKey } from "./canary.ts";
import { todaysBuild } from "./serve-bundle.ts";
import { type Build, type Store, workerdConfig } from "./serve-config.ts";
import { WorkerdProcess } from "./serve-process.ts";
import { testSettings } from "./settings.ts";

export interface ServeOptions {
  /** What is served, where it is not today's Worker. */
  readonly build?: Build;
  /** See `workerdConfig`. */
  readonly objectsOf?: Build;
  readonly settings?: Readonly<Record<string, string>>;
  /** In memory unless this is false: the disk is then neither measured nor waited for. */
  readonly tmpfs?: boolean;
  /** The flood shield's limit, where a bench asks for more than it lets through. */
  readonly floodLimit?: number;
  readonly standIns?: Readonly<Record<string, string>>;
  readonly door?: string | undefined;
  readonly storesAt?: Readonly<Partial<Record<Store, string>>>;
  readonly internetAt?: string;
}

export class Server extends WorkerdProcess {
  static async start(options: ServeOptions = {}): Promise<Server> {
    const server = new Server(options.tmpfs ?? true);
    await server.deploy(options);
    return server;
  }

  /** Over whatever was served and stored here before. */
  async deploy(options: ServeOptions): Promise<void> {
    const { objectsOf, floodLimit, standIns = {}, door, storesAt = {}, internetAt } = options;
    const build = options.build ?? (await todaysBuild());
    await this.kill9();
    this.#bring(build, "bundle");
    if (objectsOf) this.#bring(objectsOf, "objects");
    const settings = { ...testSettings, ...options.settings };
    guardKey(settings.UPSTREAM_API_KEY);
    this.configure(
      workerdConfig({ build, objectsOf, disk: this.disk, settings, floodLimit, standIns, door, storesAt, internetAt }),
    );
    await this.restart();
  }

  #bring({ folder }: Build, as: string): void {
    rmSync(join(this.folder, as), { recursive: true, force: true });
    cpSync(folder, join(this.folder, as), { recursive: true });
  }

  /** A call of the platform, with its key. */
  platform(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (!headers.has("Authorization")) headers.set("Authorization", `Bearer ${testSettings.PLATFORM_API_KEY}`);
    return fetch(`${this.url}/platform/v2/${path}`, { ...init, headers });
  }
}
