// The fields that models share. Each is bounded: what is accepted decides how large a reservation can get.
import * as z from "zod";

/** The largest body that the platform takes; no media string can be longer. */
const PAYLOAD_LIMIT = 20 * 1024 ** 2;
const LONGEST_PROMPT = 32_768;
const LONGEST_NAME = 2048;
/** Where the docs do not say how many: above what any of these models is known to use. */
const MANY = 16;

export const prompt = (longest = LONGEST_PROMPT) => z.string().min(1).max(longest);

/** Clients send an empty one for "none". */
export const negativePrompt = () => z.string().max(LONGEST_PROMPT).optional();

export const name = () => z.string().min(1).max(LONGEST_NAME);

const ADDRESS_OR_DATA = /^(https:\/\/\S+|data:[\s\S]+|[A-Za-z0-9+/=_\s-]+)$/;

export const media = () =>
  z
    .string()
    .min(1)
    .max(PAYLOAD_LIMIT)
    .regex(ADDRESS_OR_DATA, "expected an https URL, a data URL, or base64")
    .describe("An https URL, a data URL, or base64.");

export const mediaList = (most = MANY) => z.array(media()).min(1).max(most);

export const integer = (from: number, to: number) => z.int().min(from).max(to);

export const between = (from: number, to: number) => z.number().min(from).max(to);

const seedNumber = () => z.int().min(-1).describe("−1 takes a new one. The same seed and input give the same result.");

export const seed = () => seedNumber().default(-1);

/** A seed whose default the docs do not name. */
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
