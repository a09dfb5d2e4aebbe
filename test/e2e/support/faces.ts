// The two places that an SDK can be pointed at: the embedded platform with its key, and the gateway with a user's token.
import type { Server } from "../../support/serve.ts";
import { testSettings } from "../../support/settings.ts";
import { exchange } from "./exchange.ts";

export interface Face {
  readonly name: string;
  readonly base: string;
  readonly key: (server: Server) => Promise<string>;
  /** The id of a job that runSync made. */
  readonly syncId: RegExp;
  readonly unknownModel: string;
}

export const platform: Face = {
  name: "the platform",
  base: "/platform/v2",
  key: async () => testSettings.PLATFORM_API_KEY,
  syncId: /^sync-[\w-]+$/,
  unknownModel: "ENDPOINT_NOT_FOUND",
};

export const gateway: Face = {
  name: "the gateway",
  base: "/v2",
  key: (server) => mint(server, "ada"),
  syncId: /^sync-[\w-]+\.[0-9a-z]{23}\.[0-9a-f]{32}$/,
  unknownModel: "MODEL_NOT_FOUND",
};

export async function mint(server: Pick<Server, "url">, user: string): Promise<string> {
  const asked = { user, plan: "unlimited" };
  return (await exchange<{ token: string }>(server, "POST", "/tokens", testSettings.APP_SECRET, asked)).token;
}

/** Lets users call an endpoint that the catalog does not know. */
export async function open(server: Server, endpoint: string): Promise<void> {
  const terms = { passthrough: true, maxUsd: 0 };
  await exchange(server, "PUT", `/admin/models/${endpoint}`, testSettings.ADMIN_TOKEN, terms);
}
