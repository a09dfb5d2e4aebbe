// The fields that models share. Each is bounded: what is accepted decides how large a reservation can get.
import * as z from "zod";
import { type MediaKind, xMedia } from "./media-members.ts";

/** The largest body that the platform takes; no media string can be longer. */
const PAYLOAD_LIMIT = 20 * 1024 ** 2;
const LONGEST_PROMPT = 32_768;
const LONGEST_NAME = 2048;
/** For fields without a documented maximum: above what any of these models is known to use. */
const MANY = 16;

export const prompt = (longest = LONGEST_PROMPT) => z.string().min(1).max(longest);

/** Clients send an empty text for "none". */
export const negativePrompt = () => z.string().max(LONGEST_PROMPT).optional();

export const name = () => z.string().min(1).max(LONGEST_NAME);

/** Which hosts a URL may be on, the gateway says: it knows its own links, which are http on a developer's machine. */
const ADDRESS_OR_DATA = /^(https?:\/\/\S+|data:[\s\S]+|[A-Za-z0-9+/=_\s-]+)$/;

/** A file that the model is given: `x-media` in its JSON Schema says of what kind. */
export const media = (kind: MediaKind = "image") =>
  z
    .string()
    .min(1)
    .max(PAYLOAD_LIMIT)
    .regex(ADDRESS_OR_DATA, "expected a public https URL, a link of an upload or a picture, a data URL, or base64")
    .meta({
      description: "A public https URL, a link of an upload or a picture here, a data URL, or base64.",
      [xMedia]: kind,
    });

export const mediaList = (most = MANY) =>
  z
    .array(media())
    .min(1)
    .max(most)
    .meta({ [xMedia]: "image" satisfies MediaKind });

export const integer = (from: number, to: number) => z.int().min(from).max(to);

export const between = (from: number, to: number) => z.number().min(from).max(to);

const seedNumber = () => z.int().min(-1).describe("−1 takes a new one. The same seed and input give the same result.");

export const seed = () => seedNumber().default(-1);

/** A seed without a documented default. */
export const unsetSeed = () => seedNumber().optional();

/** Bounded, since each second is paid for. */
export const seconds = (longest: number) => integer(1, longest).describe("Seconds.");

const WIDTH_BY_HEIGHT = /^[1-9]\d{1,4}\*[1-9]\d{1,4}$/;

/** Listed sizes are the ones to prefer: image clients send sizes of their own by default, and the price does not depend on it. */
export const size = (...preferred: string[]) =>
  z
    .string()
    .max(11)
    .regex(WIDTH_BY_HEIGHT, "expected WIDTH*HEIGHT in pixels, such as 1024*1024")
    .meta({
      description: `WIDTH*HEIGHT in pixels${preferred.length > 0 ? `; best one of ${preferred.join(", ")}` : ""}.`,
      examples: preferred.length > 0 ? preferred : ["1024*1024"],
    });

export const safetyChecker = () => z.boolean().default(true);

export const loras = () =>
  z
    .array(z.looseObject({ path: name(), scale: z.number() }))
    .max(MANY)
    .optional();
