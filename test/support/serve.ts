// The built Worker in a real process of its own, with the tests' settings.
import { cpSync } from "node:fs";
import { join } from "node:path";
import { guardKey } from "./canary.ts";
import { bundle } from "./serve-bundle.ts";
import { workerdConfig } from "./serve-config.ts";
import { WorkerdProcess } from "./serve-process.ts";
import { testSettings } from "./settings.ts";

export interface ServeOptions {
  readonly settings?: Readonly<Record<string, string>>;
  /** In memory unless this is false: the disk is then neither measured nor waited for. */
  readonly tmpfs?: boolean;
  /** The flood shield's limit, where a bench asks for more than it lets through. */
  readonly floodLimit?: number;
  /** See `workerdConfig`. */
  readonly standIns?: Readonly<Record<string, string>>;
  readonly door?: string | undefined;
  readonly cacheAt?: string;
}

export class Server extends WorkerdProcess {
  static async start(options: ServeOptions = {}): Promise<Server> {
    const { tmpfs = true, floodLimit, standIns = {}, door, cacheAt } = options;
    const built = await bundle();
    const server = new Server(tmpfs);
    cpSync(built, join(server.folder, "bundle"), { recursive: true });
    const settings = { ...testSettings, ...options.settings };
    guardKey(settings.UPSTREAM_API_KEY);
    server.configure(
      workerdConfig({ bundle: built, disk: server.disk, settings, floodLimit, standIns, door, cacheAt }),
    );
    await server.restart();
    return server;
  }

  /** A call of the platform, with its key. */
  platform(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (!headers.has("Authorization")) headers.set("Authorization", `Bearer ${testSettings.PLATFORM_API_KEY}`);
    return fetch(`${this.url}/platform/v2/${path}`, { ...init, headers });
  }
}
