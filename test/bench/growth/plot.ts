// A curve as an SVG: sizes on a logarithmic axis, milliseconds from zero, in colours that both light and dark pages bear.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../../src/cli/wrangler.ts";
import type { Curve } from "./by-size.ts";

const folder = "docs/plots";

const width = 420;
const height = 240;
const plot = { left: 52, right: 376, top: 60, bottom: 206 };
const ink = "#768390";
const line = "#388bfd";
/** So that a flat curve lies well inside, and one that doubles is still to be seen. */
const headroom = 2;
const digits = 3;

/** A picture of a curve. The figures stand in its words too. */
export interface Plot {
  readonly what: string;
  readonly words: string;
  /** From the root. */
  readonly path: string;
}

export function writePlot(curve: Curve): Plot {
  const { what } = curve;
  const path = `${folder}/${what.replace(/^an? /, "").replaceAll(" ", "-")}.svg`;
  mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, path), drawCurve(curve));
  return { what, words: describe(curve), path };
}

function describe({ what, beside, points }: Curve): string {
  const figures = points.map(({ cpuMs }) => cpuMs.toPrecision(digits)).join(", ");
  const sizes = points.map(({ size }) => size.toLocaleString("en")).join(", ");
  return `${what} takes ${figures} ms of CPU beside ${sizes} ${beside}`;
}

function drawCurve(curve: Curve): string {
  const { what, beside, points } = curve;
  const sizes = points.map(({ size }) => Math.log10(size));
  const [first = 0, last = 1] = [Math.min(...sizes), Math.max(...sizes)];
  const top = roundedUp(Math.max(headroom * (points[0]?.cpuMs ?? 1), ...points.map(({ cpuMs }) => cpuMs)));
  const x = (size: number) => plot.left + ((Math.log10(size) - first) / (last - first || 1)) * (plot.right - plot.left);
  const y = (ms: number) => plot.bottom - (ms / top) * (plot.bottom - plot.top);
  const marks = [0, top / 2, top].map((ms) => [
    `<path d="M${plot.left} ${y(ms)}H${plot.right}" stroke="${ink}" stroke-opacity="0.4"/>`,
    label(plot.left - 8, y(ms) + 4, "end", String(ms)),
  ]);
  const names = points.map(({ size }) => label(x(size), plot.bottom + 20, "middle", size.toLocaleString("en")));
  const path = points.map(({ size, cpuMs }) => `${place(x(size))} ${place(y(cpuMs))}`).join("L");
  const dots = points.map(
    ({ size, cpuMs }) => `<circle cx="${place(x(size))}" cy="${place(y(cpuMs))}" r="4" fill="${line}"/>`,
  );
  const texts = [
    label(plot.left - 36, 20, "start", `CPU of ${what}, in ms,`),
    label(plot.left - 36, 38, "start", `beside so many ${beside}`),
    ...names,
  ];
  const drawn = `<path d="M${path}" fill="none" stroke="${line}" stroke-width="2"/>`;
  const frame = `xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  return [
    `<svg ${frame}>`,
    `<title>${describe(curve)}</title>`,
    ...marks.flat(),
    drawn,
    ...dots,
    ...texts,
    "</svg>",
    "",
  ].join("\n");
}

/** The next of 1, 2 and 5 with zeros. */
function roundedUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const digit = [1, 2, 5, 10].find((one) => one * power >= value) ?? 10;
  return Number((digit * power).toPrecision(1));
}

function label(x: number, y: number, anchor: "start" | "middle" | "end", text: string): string {
  const style = `font-family="sans-serif" font-size="13" fill="${ink}" text-anchor="${anchor}"`;
  return `<text x="${place(x)}" y="${place(y)}" ${style}>${text}</text>`;
}

const place = (value: number) => Number(value.toFixed(1));
