// The media services: one instance per isolate and config.
import type { Config } from "../../config.ts";
import { Flights } from "./flights.ts";
import { Links } from "./links.ts";
import { Reuse } from "./reuse.ts";

export interface Images {
  readonly links: Links;
  readonly reuse: Reuse;
  readonly flights: Flights;
}

const imagesByConfig = new WeakMap<Config, Images>();

export function imagesOf(config: Config, env: Pick<Env, "IMAGES" | "JOB_MEDIA" | "SHARED_REQUEST">): Images {
  const known = imagesByConfig.get(config);
  if (known) return known;
  const links = new Links(config, env.JOB_MEDIA);
  const images = { links, reuse: new Reuse(config, env, links), flights: new Flights(config, env) };
  imagesByConfig.set(config, images);
  return images;
}
