// The light of a picture: colours that the prompt names, or else colours chosen by a hash.
import { between, type Chance, pick } from "../chance.ts";
import { type Color, hex, tint, turn } from "./color.ts";

export interface Palette {
  /** From the zenith to the horizon. */
  readonly sky: readonly Color[];
  readonly light: Color;
  /** The land close by; what lies farther fades into the horizon's colour. */
  readonly land: Color;
  readonly accent: Color;
  /** 0 to 1: how many stars are out. */
  readonly stars: number;
  readonly moon: boolean;
  readonly snow: boolean;
  readonly aurora: boolean;
}

interface Mood {
  readonly words: string;
  readonly sky: string;
  readonly light: string;
  readonly land: string;
  readonly accent: string;
  readonly stars?: number;
  readonly traits?: string;
}

const moods: readonly Mood[] = [
  {
    words: "dusk sunset evening twilight golden romantic",
    sky: "29285a 63407f c45a78 f4936a ffd596",
    light: "fff0c4",
    land: "1f1838",
    accent: "ff8a5c",
    stars: 0.25,
  },
  {
    words: "dawn morning sunrise mist misty fog foggy dream dreamy pastel soft",
    sky: "7090c4 a3b2d8 dcc2d4 f8d2c0 fff0de",
    light: "fffaf0",
    land: "3d4d6b",
    accent: "f0a8a0",
  },
  {
    words: "day sunny noon summer bright clear daylight blue",
    sky: "2a74bd 4f9bd8 8cc5ea c4e4f2 f6f3e2",
    light: "fffdf2",
    land: "1d5648",
    accent: "ffd35c",
  },
  {
    words: "night midnight moon moonlight moonlit star stars starry dark",
    sky: "060b20 0c173a 172a58 2a4674 5275a0",
    light: "f4f0dc",
    land: "070c1d",
    accent: "ffd27a",
    stars: 1,
    traits: "moon",
  },
  {
    words: "storm stormy rain rainy grey gray cloudy moody thunder dramatic",
    sky: "2c3644 48566a 71808f a5aeb2 d8d3c4",
    light: "fbf3dc",
    land: "1c2530",
    accent: "d9a15c",
  },
  {
    words: "winter snow snowy ice icy frozen arctic glacier cold",
    sky: "6d96c4 9dbbdc c6d8ea e6e4ee fdebe2",
    light: "fffaf2",
    land: "54719a",
    accent: "e87a6a",
    traits: "snow",
  },
  {
    words: "autumn fall october harvest vintage rustic amber",
    sky: "5f5873 9a6672 d08060 efb070 fae2b0",
    light: "fff3d0",
    land: "45201f",
    accent: "e2622c",
  },
  {
    words: "aurora northern borealis polar",
    sky: "030b1c 05182f 0a2c44 15485a 2f6e74",
    light: "e8fff4",
    land: "030a14",
    accent: "7af0b8",
    stars: 0.9,
    traits: "moon aurora snow",
  },
  {
    words: "neon cyberpunk synthwave retro futuristic future electric robot",
    sky: "120a30 2f1160 761c88 dc3f9c ffa08c",
    light: "ffe9a8",
    land: "10082a",
    accent: "35e6ff",
    stars: 0.5,
  },
  {
    words: "spring blossom cherry fresh garden april cute",
    sky: "7fb2de b4cbee dfd0ee f9d4e0 fff0e2",
    light: "fffbea",
    land: "4f7a63",
    accent: "f48fb1",
  },
  {
    words: "jungle tropical jade emerald island rainforest",
    sky: "0d4350 1f6d72 58a092 aed2ac f6efc0",
    light: "fffbd6",
    land: "0b2f33",
    accent: "ff9466",
  },
  {
    words: "lavender violet magic magical fantasy enchanted wizard dragon castle",
    sky: "2a2a66 544a98 8c6fc0 caa0d8 f8d8e4",
    light: "fff4f2",
    land: "221c48",
    accent: "ffc46b",
    stars: 0.45,
  },
];

/** Pulls the whole picture towards a colour that the prompt names. */
const dyes: Readonly<Record<string, string>> = {
  red: "d8323c",
  orange: "f08030",
  yellow: "f2c838",
  green: "3c9a50",
  teal: "20908c",
  turquoise: "2cb0b0",
  purple: "7c3cb0",
  pink: "f080b0",
  magenta: "d030a0",
  crimson: "b81830",
  gold: "e0b040",
};

/** The light that suits a motif, for prompts that name none. */
const defaultPalettes: Readonly<Record<string, string>> = {
  desert: "dusk autumn",
  city: "dusk night neon",
  lighthouse: "dusk night storm",
  forest: "dawn autumn jungle",
  flower: "spring day dusk",
  mountain: "dawn dusk winter",
  sea: "dusk dawn day",
  space: "night neon lavender",
  silk: "neon lavender dusk jungle dawn autumn",
};

export function paletteOf(words: readonly string[], motif: string, byPrompt: Chance, chance: Chance): Palette {
  const fallback = defaultPalettes[motif]?.split(" ");
  const named = words.map((word) => moods.find((mood) => mood.words.split(" ").includes(word))).find(Boolean);
  const chosen = fallback && pick(byPrompt, fallback);
  const any = pick(byPrompt, moods);
  const mood = named ?? moods.find((candidate) => chosen && candidate.words.startsWith(chosen)) ?? any;
  const angle = between(chance, -0.16, 0.16);
  const dye = words.map((word) => dyes[word]).find(Boolean);
  const shade = (code: string) => {
    const turned = turn(hex(code), angle);
    return dye ? tint(turned, hex(dye), 0.55) : turned;
  };
  return {
    sky: mood.sky.split(" ").map(shade),
    light: hex(mood.light),
    land: shade(mood.land),
    accent: turn(hex(mood.accent), angle),
    stars: mood.stars ?? 0,
    moon: mood.traits?.includes("moon") ?? false,
    snow: mood.traits?.includes("snow") ?? false,
    aurora: mood.traits?.includes("aurora") ?? false,
  };
}
