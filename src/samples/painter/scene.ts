// Reads the motifs of a picture from the prompt; a hash chooses if the prompt names none.
import { type Chance, pick } from "../chance.ts";

export type Motif =
  | "mountain"
  | "hill"
  | "lake"
  | "sea"
  | "forest"
  | "desert"
  | "city"
  | "lighthouse"
  | "flower"
  | "space"
  | "silk";

const vocabulary: Readonly<Record<Motif, string>> = {
  lighthouse: "lighthouse beacon",
  space: "space galaxy planet nebula cosmos cosmic universe astronaut saturn spaceship orbit rocket alien",
  silk: "abstract pattern texture silk fluid marble wave waves gradient wallpaper background swirl logo icon paint",
  city: "city skyline town street building buildings tower skyscraper urban downtown metropolis car tokyo york paris london",
  flower: "flower flowers meadow rose tulip tulips poppy poppies sunflower bloom field garden blossom bee butterfly",
  desert: "desert dune dunes sand sahara camel canyon mars pyramid cactus",
  forest: "forest tree trees wood woods pine pines jungle bear fox deer owl wolf rainforest",
  mountain: "mountain mountains alps peak peaks hike summit glacier volcano valley himalaya fuji eagle",
  lake: "lake river pond reflection fjord canoe swan duck",
  sea: "sea ocean beach coast water sail sailboat boat ship harbor harbour island bay surf whale fish dolphin",
  hill: "hill hills countryside farm village sheep horse vineyard landscape",
};

const chosenByHash: readonly Motif[] = ["mountain", "lake", "sea", "hill", "forest", "mountain", "lake", "flower"];

export const motifs = Object.keys(vocabulary) as readonly Motif[];

export const wordsOf = (prompt: string): readonly string[] =>
  prompt
    .slice(0, 4000)
    .toLowerCase()
    .match(/\p{L}+/gu) ?? [];

/** All motifs that the prompt names, in the order of the table. The first leads, the others join where they can. */
export function motifsOf(words: readonly string[], chance: Chance): readonly [Motif, ...Motif[]] {
  const known = new Set(words);
  const [first, ...others] = motifs.filter((motif) => vocabulary[motif].split(" ").some((word) => known.has(word)));
  const hashed = pick(chance, chosenByHash);
  return first ? [first, ...others] : [hashed];
}
