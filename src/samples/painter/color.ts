// Colours: mixed in OKLab, where the middle of two colours is the one the eye expects.

/** sRGB, each 0 to 255 and not rounded. */
export type Color = readonly [number, number, number];
type Lab = readonly [number, number, number];

const linear = (value: number) => (value <= 10.31 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4);
const encoded = (value: number) =>
  Math.min(255, Math.max(0, value <= 0.0031308 ? value * 3294.6 : (1.055 * value ** (1 / 2.4) - 0.055) * 255));

export const hex = (code: string): Color => {
  const value = Number.parseInt(code, 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
};

function toLab(color: Color): Lab {
  const [r, g, b] = [linear(color[0]), linear(color[1]), linear(color[2])];
  const l = Math.cbrt(0.4122 * r + 0.5363 * g + 0.0514 * b);
  const m = Math.cbrt(0.2119 * r + 0.6807 * g + 0.1074 * b);
  const s = Math.cbrt(0.0883 * r + 0.2817 * g + 0.63 * b);
  return [
    0.2105 * l + 0.7936 * m - 0.0041 * s,
    1.978 * l - 2.4286 * m + 0.4506 * s,
    0.0259 * l + 0.7828 * m - 0.8087 * s,
  ];
}

function fromLab([light, a, b]: Lab): Color {
  const l = (light + 0.3963 * a + 0.2158 * b) ** 3;
  const m = (light - 0.1056 * a - 0.0639 * b) ** 3;
  const s = (light - 0.0895 * a - 1.2915 * b) ** 3;
  return [
    encoded(4.0767 * l - 3.3077 * m + 0.231 * s),
    encoded(-1.2684 * l + 2.6098 * m - 0.3413 * s),
    encoded(-0.0042 * l - 0.7034 * m + 1.7076 * s),
  ];
}

export function mix(from: Color, to: Color, share: number): Color {
  const [a, b] = [toLab(from), toLab(to)];
  const part = (i: 0 | 1 | 2) => a[i] + (b[i] - a[i]) * share;
  return fromLab([part(0), part(1), part(2)]);
}

/** The hue turned, keeping the lightness. */
export function turn(color: Color, radians: number): Color {
  const [light, a, b] = toLab(color);
  const [cos, sin] = [Math.cos(radians), Math.sin(radians)];
  return fromLab([light, a * cos - b * sin, a * sin + b * cos]);
}

/** Pulled towards another colour's hue, keeping the lightness. */
export function tint(color: Color, towards: Color, share: number): Color {
  const [light, a, b] = toLab(color);
  const target = toLab(towards);
  return fromLab([light, a + (target[1] - a) * share, b + (target[2] - b) * share]);
}

/** Colours along evenly spaced stops, three floats each. */
export function ramp(stops: readonly Color[], steps: number): Float32Array {
  const table = new Float32Array(steps * 3);
  for (let i = 0; i < steps; i++) {
    const along = (i / Math.max(1, steps - 1)) * (stops.length - 1);
    const at = Math.min(stops.length - 2, Math.floor(along));
    table.set(mix(stops[at] as Color, stops[at + 1] as Color, along - at), i * 3);
  }
  return table;
}
