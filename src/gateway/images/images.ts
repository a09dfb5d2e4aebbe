// The room as the rest of the gateway has it: one an isolate.
import type { Config } from "../../config.ts";
import { Flights } from "./flights.ts";
import { Links } from "./links.ts";
import { Reuse } from "./reuse.ts";

export interface Images {
  readonly links: Links;
  readonly reuse: Reuse;
  readonly flights: Flights;
}

const rooms = new WeakMap<Config, Images>();

export function imagesOf(config: Config, env: Pick<Env, "IMAGES" | "JOB_MEDIA" | "SHARED_REQUEST">): Images {
  const known = rooms.get(config);
  if (known) return known;
  const links = new Links(config, env.JOB_MEDIA);
  const room = { links, reuse: new Reuse(config, env, links), flights: new Flights(config, env) };
  rooms.set(config, room);
  return room;
}
