// Texts as JSON, URLs and base64 write them, in every way at random: what the search for secrets is tried with.
import fc from "fast-check";

const hex = (code: number, digits: number) => code.toString(16).padStart(digits, "0");
const unicode = (character: string) => `\\u${hex(character.charCodeAt(0), 4)}`;
const percent = (character: string) => `%${hex(character.charCodeAt(0), 2)}`;
const inString = (text: string) => JSON.stringify(text).slice(1, -1);
const every = (write: (character: string) => string) => (text: string) => Array.from(text, write).join("");

type Write = (text: string) => string;

/** Each character in a way of its own. */
const mixed = fc.infiniteStream(fc.nat(5)).map((ways): Write => {
  const write = [
    (character: string) => character,
    unicode,
    (character: string) => unicode(character).toUpperCase().replace("\\U", "\\u"),
    percent,
    (character: string) => percent(character).toUpperCase(),
    (character: string) => (character === "/" ? "\\/" : character),
  ];
  return every((character) => (write[ways.next().value ?? 0] ?? unicode)(character));
});

const spelled: fc.Arbitrary<Write> = fc.oneof(
  fc.constant<Write>((text) => text),
  mixed,
  mixed.map(
    (write): Write =>
      (text) =>
        inString(write(text)),
  ),
  mixed.map(
    (write): Write =>
      (text) =>
        inString(inString(write(text))),
  ),
  fc.constant<Write>(every((character) => every(unicode)(unicode(character)))),
  fc.constant<Write>(every((character) => every(unicode)(percent(character)))),
  fc.constant<Write>(every((character) => every(percent)(percent(character)))),
  fc.constant<Write>(every((character) => every(percent)(unicode(character)))),
);

const ascii = fc.string({
  unit: fc.integer({ min: 0, max: 127 }).map((code) => String.fromCharCode(code)),
  maxLength: 5,
});
const urlSafe = (text: string) => text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

/** Base64 of the text with others around it, or the text itself. */
const carried: fc.Arbitrary<Write> = fc.oneof(
  fc.constant<Write>((text) => text),
  fc.tuple(ascii, ascii).map(
    ([before, after]): Write =>
      (text) =>
        btoa(before + text + after),
  ),
  fc.tuple(ascii, ascii).map(
    ([before, after]): Write =>
      (text) =>
        urlSafe(btoa(before + text + after)),
  ),
);

export const anySpelling: fc.Arbitrary<Write> = fc.tuple(carried, spelled).map(
  ([carry, spell]): Write =>
    (text) =>
      spell(carry(text)),
);

/** As providers make them. */
export const anyKey = fc.string({
  unit: fc.constantFrom(..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+=~u"),
  minLength: 20,
  maxLength: 80,
});

/** What might hide what comes behind it, or take its beginning for its own end. */
export const anySurrounding = fc
  .array(
    fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 20 }),
      fc.constantFrom(
        "\\",
        "\\\\",
        "%",
        "%2",
        "\\u",
        "\\u00",
        "\\u005c",
        "\\u0025",
        "%25",
        "%5c",
        "\\n",
        '\\"',
        "u",
        "=",
      ),
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(""));
