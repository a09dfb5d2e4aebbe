// Paints a picture without a model: the prompt chooses light and motif, the seed everything else.
import { between, type Chance, chanceFrom, hashText } from "../chance.ts";
import { type Canvas, canvasOf, type Picture } from "./canvas.ts";
import { paintCity } from "./city.ts";
import { develop } from "./develop.ts";
import { paintRanges } from "./land.ts";
import { paintBirds, paintLighthouse } from "./landmark.ts";
import { paintMeadow } from "./meadow.ts";
import { type Palette, paletteOf } from "./palette.ts";
import { retouched } from "./retouch.ts";
import { type Motif, motifsOf, wordsOf } from "./scene.ts";
import { paintSilk } from "./silk.ts";
import { paintAurora, paintClouds, paintSky, paintStars, paintSun, type Sun } from "./sky.ts";
import { paintSpace } from "./space.ts";
import { paintSailboat, paintWater } from "./water.ts";

export type { Picture } from "./canvas.ts";

export interface PictureRequest {
  readonly prompt: string;
  readonly seed: number;
  readonly width: number;
  readonly height: number;
  /** It is shown, tinted, in place of what the prompt names. */
  readonly given?: Picture | undefined;
}

const sideBounds = { least: 64, most: 2048 } as const;

/** A larger picture is painted at this many pixels and scaled up, since a Worker pays for CPU time. */
const paintedPixels = 1024 * 576;

const bounded = (side: number) => {
  const whole = Number.isFinite(side) ? Math.round(side) : sideBounds.least;
  return Math.min(sideBounds.most, Math.max(sideBounds.least, whole));
};

export function paint(request: PictureRequest): Picture {
  const [width, height] = [bounded(request.width), bounded(request.height)];
  const scale = Math.min(1, Math.sqrt(paintedPixels / (width * height)));
  const [across, down] = [Math.round(width * scale), Math.round(height * scale)];
  const prompt = request.prompt.trim().toLowerCase();
  const byPrompt = chanceFrom(hashText(prompt));
  const chance = chanceFrom(hashText(prompt, request.seed));
  const words = wordsOf(prompt);
  const shown = motifsOf(words, byPrompt);
  const palette = paletteOf(words, shown[0], byPrompt, chance);
  const canvas = request.given
    ? retouched(request.given, across, down, palette)
    : painted(canvasOf(across, down), palette, shown, chance);
  return { width, height, rgb: develop(canvas, width, height, chance) };
}

function painted(canvas: Canvas, palette: Palette, shown: readonly [Motif, ...Motif[]], chance: Chance): Canvas {
  if (shown[0] === "space") paintSpace(canvas, palette, chance);
  else if (shown[0] === "silk") paintSilk(canvas, palette, chance);
  else paintOutdoors(canvas, palette, new Set(shown), chance);
  return canvas;
}

function paintOutdoors(canvas: Canvas, palette: Palette, shows: ReadonlySet<Motif>, chance: Chance): void {
  const { width, height } = canvas;
  const has = (...motifs: Motif[]) => motifs.some((motif) => shows.has(motif));
  const wet = has("sea", "lake", "lighthouse", "city");
  const horizon = Math.round(height * (wet ? between(chance, 0.56, 0.64) : between(chance, 0.6, 0.68)));
  const sun = sunOver(canvas, palette, horizon, chance);
  paintSky(canvas, palette, sun, horizon);
  if (palette.stars) paintStars(canvas, palette.stars, horizon, chance);
  if (palette.aurora) paintAurora(canvas, palette, horizon, chance);
  paintSun(canvas, palette, sun, chance);
  paintClouds(canvas, palette, sun, horizon, chance);
  const far = horizon / height;
  const ranges = (
    shape: Parameters<typeof paintRanges>[4]["shape"],
    from: number,
    to: number,
    count: number,
    rise: number,
    near = 0.9,
  ) =>
    paintRanges(canvas, palette, sun, chance, {
      shape,
      from,
      to,
      count,
      rise,
      near,
      ...(wet ? { bottom: horizon } : {}),
    });
  if (has("mountain", "lake")) ranges("mountain", far + 0.01, far + 0.06, 3, 0.34, wet ? 0.75 : 0.7);
  else if (has("desert")) ranges("mountain", far + 0.02, far + 0.03, 2, 0.14, 0.45);
  else if (!has("sea", "lighthouse", "city")) ranges("hill", far, far + 0.08, 3, 0.18, 0.6);
  else if (!has("city") && chance() < 0.6) ranges("hill", far + 0.03, far + 0.035, 2, 0.09, 0.4);
  if (has("lake") && !has("city")) ranges("pine", far + 0.012, far + 0.012, 1, 0.02, 0.8);
  if (has("city")) paintCity(canvas, palette, horizon, chance);
  if (wet) paintWater(canvas, palette, sun, horizon, has("lake", "city") ? 0.55 : 1, chance);
  if (has("sea") && !has("lighthouse")) paintSailboat(canvas, palette, horizon, chance);
  const land = (shape: "pine" | "dune" | "hill", from: number, to: number, count: number, rise: number) =>
    paintRanges(canvas, palette, sun, chance, { shape, from, to, count, rise, far: 0.5, near: 1 });
  if (has("lighthouse")) paintLighthouse(canvas, palette, sun, horizon, chance);
  else if (has("desert")) land("dune", far + 0.08, 1, 4, 0.2);
  else if (has("flower")) paintMeadow(canvas, palette, sun, height * 0.72, chance);
  else if (has("forest")) land("pine", wet ? 0.97 : far + 0.06, 1.06, wet ? 1 : 4, 0.12);
  else if (has("lake")) land("pine", 1.02, 1.06, 1, 0.06);
  else if (!wet) land(has("mountain") ? "pine" : "hill", far + 0.17, 1.04, 3, 0.16);
  if (!palette.moon && width > 200 && chance() < 0.55) paintBirds(canvas, palette, horizon, chance);
}

/** Low over the horizon by day, high by night, and never in the very middle. */
function sunOver(canvas: Canvas, palette: Palette, horizon: number, chance: Chance): Sun {
  const side = chance() < 0.5 ? -1 : 1;
  return {
    x: canvas.width * (0.5 + side * between(chance, 0.06, 0.26)),
    y: horizon * (palette.moon ? between(chance, 0.22, 0.42) : between(chance, 0.55, 0.76)),
    radius: canvas.unit * (palette.moon ? between(chance, 0.045, 0.065) : between(chance, 0.05, 0.085)),
  };
}
