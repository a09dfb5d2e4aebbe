// JSON as nobody would write it but anybody may send it: odd spellings, repeated keys, and broken in every way.
import fc from "fast-check";
import { bytesOf } from "./cut-source.ts";

const blank = fc.stringMatching(/^[ \n\r\t]{0,3}$/);
const number = fc.oneof(
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.constantFrom("0", "-0", "1e5", "1E+5", "0.5e-7", "123456789012345678901234567890", "1e400"),
  fc.constantFrom("01", "-", "1.", ".5", "+1", "1e", "1e+", "--1", "0x1", "Infinity", "NaN"),
);
const sound = number.filter((text) => /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text));

/** Each character plain, or as its escape. */
const spelled = (text: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(text, fc.infiniteStream(fc.nat(9))).map(([plain, dice]) => {
    const units = Array.from({ length: plain.length }, (_, i) => plain.charCodeAt(i));
    const escaped = units.map((unit) => {
      const roll = Number(dice.next().value);
      const hex = unit.toString(16).padStart(4, "0");
      if (roll === 0) return `\\u${hex}`;
      if (roll === 1) return `\\u${hex.toUpperCase()}`;
      const char = String.fromCharCode(unit);
      return (unit & 0xf800) === 0xd800 ? char : JSON.stringify(char).slice(1, -1);
    });
    const joined = escaped.join("");
    return `"${joined.isWellFormed() ? joined : JSON.stringify(plain).slice(1, -1)}"`;
  });

const string = spelled(fc.string({ unit: "grapheme", maxLength: 24 }));
const key = fc.oneof(
  { weight: 3, arbitrary: spelled(fc.constantFrom("input", "webhook", "policy", "s3Config", "prompt", "seed")) },
  { weight: 1, arbitrary: spelled(fc.constantFrom("webhool", "Webhook", "webhook ", "__proto__", "", "inputs")) },
  { weight: 1, arbitrary: string },
);

const { value, object } = fc.letrec<{ value: string; object: string; array: string; scalar: string }>((tie) => ({
  scalar: fc.oneof(string, sound, fc.constantFrom("true", "false", "null")),
  array: fc
    .array(fc.tuple(blank, tie("value"), blank), { maxLength: 5, depthIdentifier: "json" })
    .map((items) => `[${items.map((parts) => parts.join("")).join(",")}]`),
  object: fc
    .array(fc.tuple(blank, key, blank, blank, tie("value"), blank), { maxLength: 6, depthIdentifier: "json" })
    .map((members) => `{${members.map(([a, name, b, c, text, d]) => `${a}${name}${b}:${c}${text}${d}`).join(",")}}`),
  value: fc.oneof({ depthIdentifier: "json", maxDepth: 4 }, tie("scalar"), tie("array"), tie("object")),
}));

/** A job request, often with all that matters in it, in any order and more than once. */
const job = fc
  .array(
    fc.oneof(
      fc.tuple(spelled(fc.constant("input")), fc.oneof({ weight: 4, arbitrary: object }, value)),
      fc.tuple(spelled(fc.constant("webhook")), fc.oneof(string, value)),
      fc.tuple(spelled(fc.constant("policy")), object),
      fc.tuple(key, value),
    ),
    { minLength: 1, maxLength: 6 },
  )
  .map((members) => `{${members.map(([name, text]) => `${name}:${text}`).join(",")}}`);

const text = fc.tuple(blank, fc.oneof({ weight: 6, arbitrary: job }, object, value, number), blank);
const junk = fc.oneof(
  fc.constantFrom([0xef, 0xbb, 0xbf], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xff], [0xf4, 0x90, 0x80, 0x80], [0xe6, 0x97]),
  fc
    .constantFrom('"', "\\", "{", "}", "[", "]", ",", ":", "\u0000", "\n", "\\u12", "\\x", "tru", "nul")
    .map((part) => [...bytesOf(part)]),
  fc.array(fc.nat(255), { minLength: 1, maxLength: 3 }),
);

/** Where bytes are put in, and how many are taken out there. */
const wound = fc.record({ at: fc.double({ min: 0, max: 1, noNaN: true }), out: fc.nat(3), put: junk });

export const jsonBytes: fc.Arbitrary<Uint8Array> = fc
  .tuple(
    text,
    fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(wound, { minLength: 1, maxLength: 2 })),
    fc.nat(9),
  )
  .map(([parts, wounds, tail]) => {
    let bytes = [...bytesOf(parts.join(""))];
    for (const { at, out, put } of wounds) bytes.splice(Math.floor(at * (bytes.length + 1)), out, ...put);
    if (tail === 0) bytes = bytes.slice(0, Math.floor(bytes.length / 2));
    return new Uint8Array(bytes);
  });

export const cuts = fc.array(fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 40 })), { minLength: 1, maxLength: 5 });
