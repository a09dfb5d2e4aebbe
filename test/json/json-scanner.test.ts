// The scanner's one promise: its verdict on a text is JSON.parse's, wherever the chunks end.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ParsedJson, parseJson } from "../../src/http/body.ts";
import { type Kind, SKIM, WATCH } from "../../src/json/json-listener.ts";
import { ALL_BYTES, MAX_DEPTH, STRICT_BYTES } from "../../src/json/json-place.ts";
import { JsonScanner } from "../../src/json/json-scanner.ts";
import { utf8 } from "../../src/json/utf8-text.ts";
import { amount } from "../support/amount.ts";
import { bytesOf } from "./cut-source.ts";
import { cuts, jsonBytes } from "./json-text.ts";

/** Watches everything, or nothing; keeps each scalar, and writes down what it is told. */
function recorder(watch: boolean) {
  const heard: string[] = [];
  const decode = (bytes: Uint8Array, start: number, end: number) => new TextDecoder().decode(bytes.slice(start, end));
  return {
    heard,
    key: (depth: number, bytes: Uint8Array, start: number, end: number) => {
      heard.push(`${depth} key ${start < 0 ? "-" : decode(bytes, start, end)}`);
    },
    value: (_depth: number, kind: Kind) => (!watch ? SKIM : kind === "object" || kind === "array" ? WATCH : 4096),
    end: (depth: number, kind: Kind, bytes: Uint8Array, start: number, end: number, size: number) => {
      heard.push(`${depth} ${kind} ${size} ${start < 0 ? "-" : decode(bytes, start, end)}`);
    },
  };
}

/** Feeds the bytes in pieces, keeping in the buffer only what must be kept. */
function scanInPieces(bytes: Uint8Array, sizes: readonly number[], watch = false, strictBytes = STRICT_BYTES) {
  const listener = recorder(watch);
  const scanner = new JsonScanner(listener, strictBytes);
  let buffer = new Uint8Array(0);
  let scanned = 0;
  let at = 0;
  for (let turn = 0; at < bytes.length; turn++) {
    const piece = bytes.subarray(at, at + (sizes[turn % sizes.length] ?? 1));
    at += piece.length;
    const joined = new Uint8Array(buffer.length + piece.length);
    joined.set(buffer);
    joined.set(piece, buffer.length);
    const next = scanner.scan(joined, scanned, joined.length);
    if (next < 0) return { verdict: scanner.fault, heard: listener.heard };
    const hold = scanner.held(next);
    scanner.shift(hold);
    buffer = joined.slice(hold);
    scanned = next - hold;
  }
  const whole = scanned === buffer.length && scanner.finish(buffer, scanned);
  return { verdict: whole ? "fine" : (scanner.fault ?? "not-json"), heard: listener.heard };
}

function expected(text: string): string {
  try {
    JSON.parse(text);
    return "fine";
  } catch {
    return "not-json";
  }
}

const rows = [
  ...[
    "",
    " ",
    "{",
    "}",
    "[",
    "]",
    "{}",
    "[]",
    "[[]]",
    "[{}]",
    "{ }",
    "[ ]",
    "[,]",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1]]",
    "[1}",
  ],
  ...['{"a"}', '{"a":}', '{"a":1,}', '{,"a":1}', '{"a":1 "b":2}', '{"a":1]', "{1:2}", "{a:1}", "{'a':1}", '{"a"::1}'],
  ...[
    "0",
    "-0",
    "00",
    "01",
    "-01",
    "1.",
    "1.0",
    ".1",
    "-",
    "-.1",
    "+1",
    "1e5",
    "1E5",
    "1e+5",
    "1e-5",
    "1e",
    "1e+",
    "1.e5",
  ],
  ...["1.5.5", "1e5e5", "1e5.5", "0e0", "0.0e00", "12a", "1_000", "0x10", "1 ", " 1", "Infinity", "NaN", "-Infinity"],
  ...["true", "false", "null", "tru", "truE", "nulll", "True", "truefalse", "[true,false,null]", "[t]", "[nul]"],
  ...['""', '"a"', '"', '"a', '"\\"', '"\\""', '"\\\\"', '"\\\\\\"', '"\\/\\b\\f\\n\\r\\t"', '"\\u0041"', '"\\u004"'],
  ...[
    '"\\u00zz"',
    '"\\x41"',
    '"\\u"',
    '"\\',
    '"\u0000"',
    '"\n"',
    '"\u001f"',
    '"\u007f"',
    '"\t"',
    '"\\ud800"',
    '"\u2028"',
  ],
  ...[
    "1 1",
    "{} {}",
    "{}x",
    "// c\n1",
    "/* c */1",
    "\ufeff1",
    "1\ufeff",
    "\u00a01",
    "\v1",
    "\f1",
    "1\u0000",
    "undefined",
  ],
  ...[`"${"x".repeat(70)}\n"`, `"${"x".repeat(4090)}\\q"`, `"${"x".repeat(4090)}\u0001"`, `"${"\\\\".repeat(3000)}"`],
  ...[
    `"${"\\\\".repeat(3000)}\\"`,
    `"${"é日😀".repeat(900)}"`,
    `[${"1,".repeat(3000)}1]`,
    `[${"[],{},".repeat(900)}0]`,
  ],
  ...[
    '{"__proto__":1}',
    '{"a":1,"a":2}',
    '{"":{"":{"":[]}}}',
    `{"${"k".repeat(3000)}":1}`,
    '\r\n\t {"a" \n:\t[ 1 , 2 ] }\r\n',
  ],
];

describe("the JSON scanner", () => {
  it.each(rows.map((text) => [text.length > 40 ? `${text.slice(0, 40)}…` : text, text]))(
    "judges %j as JSON.parse",
    (_, text) => {
      const bytes = bytesOf(text);
      const verdict = expected(text);
      const whole = scanInPieces(bytes, [bytes.length], true);
      expect(whole.verdict).toBe(verdict);
      expect(scanInPieces(bytes, [1]).verdict).toBe(verdict);
      if (verdict === "fine") expect(scanInPieces(bytes, [1], true).heard).toEqual(whole.heard);
      if (bytes.length > 60) return;
      for (let first = 1; first < bytes.length; first++)
        for (let second = 1; second <= bytes.length - first; second++) {
          const cut = scanInPieces(bytes, [first, second, bytes.length], true);
          expect(cut.verdict, `cut after ${first} and ${second} more`).toBe(verdict);
          if (verdict === "fine") expect(cut.heard).toEqual(whole.heard);
        }
    },
  );

  it("judges every string of four bytes that matter as JSON.parse does", () => {
    const alphabet = [...'{}[]:,"\\ 0-1.e', "true", "u0041", '"a"'];
    for (const a of alphabet)
      for (const b of alphabet)
        for (const c of alphabet)
          for (const d of alphabet) {
            const text = a + b + c + d;
            const verdict = scanInPieces(bytesOf(text), [3]).verdict;
            if (verdict !== expected(text)) expect.fail(`${text} is ${verdict}`);
          }
  });

  it("judges every byte in every place of a word as JSON.parse does", () => {
    for (let byte = 0; byte < 0x80; byte++)
      for (let place = 0; place < 40; place++) {
        const inString = bytesOf(`"${"x".repeat(40)}"`);
        inString[1 + place] = byte;
        const inNumber = bytesOf(`[${"1".repeat(40)}]`);
        inNumber[1 + place] = byte;
        for (const bytes of [inString, inNumber]) {
          const text = new TextDecoder().decode(bytes);
          if (scanInPieces(bytes, [100]).verdict !== expected(text)) expect.fail(`${text} (${byte} at ${place})`);
        }
      }
  });

  /** Far from the end, where nobody watches and tokens are passed over whole. */
  const passedOver = [
    (text: string) => `[${text},"and so on, and so on"]`,
    (text: string) => `[[0.5,-1e3 , ${text}],"and so on, and so on"]`,
    (text: string) => `{"a":"b\\n","c" :${text},"d":[ ],"and so on":"and so on"}`,
    (text: string) => `{${text}:[{ },{"":null}],"and so on":"and so on"}`,
  ];

  it.each(passedOver.map((wrap) => [wrap("…"), wrap]))("judges anything as JSON.parse does in %j", (_, wrap) => {
    const alphabet = [...'{}[]:,"\\ 0-1.eE+\n', "true", "nul", "\\u0041", '"a"', "\u0001", "é"];
    const texts = alphabet.flatMap((a) => alphabet.flatMap((b) => alphabet.map((c) => a + b + c)));
    for (const text of [...rows, ...texts]) {
      const bytes = bytesOf(wrap(text));
      for (const sizes of [[bytes.length], [23]]) {
        const { verdict } = scanInPieces(bytes, sizes);
        if (verdict !== expected(wrap(text))) expect.fail(`${wrap(text)} in ${sizes} is ${verdict}`);
      }
    }
  });

  it("goes as deep among what it passes over, and no deeper", () => {
    const nested = (depth: number) => bytesOf(`[0,${"[".repeat(depth)}0${"]".repeat(depth)},"and so on"]`);
    for (const sizes of [[10_000], [100], [7]]) {
      expect(scanInPieces(nested(MAX_DEPTH - 1), sizes).verdict).toBe("fine");
      expect(scanInPieces(nested(MAX_DEPTH), sizes).verdict).toBe("too-deep");
    }
  });

  it("judges any text as JSON.parse does, wherever it is cut", () => {
    fc.assert(
      fc.property(jsonBytes, cuts, fc.boolean(), (bytes, sizes, watch) => {
        // UTF-8 is not the scanner's to judge.
        const text = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true }).decode(bytes);
        expect(scanInPieces(bytesOf(text), sizes, watch).verdict).toBe(expected(text));
      }),
      { numRuns: amount(10_000) },
    );
  }, 60_000);

  it("hears the same wherever the text is cut", () => {
    fc.assert(
      fc.property(jsonBytes, cuts, (bytes, sizes) => {
        const whole = scanInPieces(bytes, [bytes.length], true);
        if (whole.verdict === "fine") expect(scanInPieces(bytes, sizes, true).heard).toEqual(whole.heard);
      }),
      { numRuns: amount(5000) },
    );
  }, 60_000);

  it("goes as deep as it says, and no deeper", () => {
    const nested = (depth: number) => bytesOf("[".repeat(depth) + "]".repeat(depth));
    expect(scanInPieces(nested(MAX_DEPTH), [7]).verdict).toBe("fine");
    expect(scanInPieces(nested(MAX_DEPTH + 1), [7]).verdict).toBe("too-deep");
    expect(parseJson(nested(MAX_DEPTH))).toHaveProperty("value");
    expect(parseJson(nested(MAX_DEPTH + 1))).toEqual({ fault: "too-deep" });
  });

  it.each([
    ["a bad escape", "\\q"],
    ["a control", "\u0001"],
  ])("does not see %s beyond the letter of a long string, wherever that is cut", (_, flaw) => {
    for (const [size, verdict] of [
      [STRICT_BYTES - 2, "not-json"],
      [STRICT_BYTES, "fine"],
    ] as const) {
      const bytes = bytesOf(`["${"x".repeat(size)}${flaw}${"y".repeat(50)}"]`);
      for (const sizes of [[bytes.length], [1], [997], [STRICT_BYTES + 2, 1]])
        expect(scanInPieces(bytes, sizes).verdict).toBe(verdict);
    }
  });

  it("sees any flaw of a long string where it is to read to the letter, wherever that is cut", () => {
    const flaws = fc.constantFrom("\\q", "\\u12G4", "\u0001", "\n", '\\"', "\\\\", "\\u0041", "x");
    const parts = fc.array(flaws, { maxLength: 6 });
    fc.assert(
      fc.property(parts, fc.nat(3 * STRICT_BYTES), cuts, (parts, at, sizes) => {
        const text = `["${"x".repeat(at)}${parts.join("y".repeat(300))}"]`;
        const scanned = scanInPieces(bytesOf(text), [STRICT_BYTES, ...sizes, 1], false, ALL_BYTES);
        expect(scanned.verdict).toBe(expected(text));
      }),
      { numRuns: amount(300) },
    );
  }, 60_000);

  it("finds the end of a long string among escapes of every parity, wherever that is cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("\\\\", '\\"', "\\n", "x", "é", "]", ",", "y".repeat(300)), { maxLength: 40 }),
        fc.nat(40),
        cuts,
        (parts, extra, sizes) => {
          const bytes = bytesOf(`["${"x".repeat(STRICT_BYTES - 20 + extra)}${parts.join("")}",1]`);
          const whole = scanInPieces(bytes, [bytes.length], true);
          expect(whole.verdict).toBe("fine");
          expect(whole.heard).toContain("1 number 1 1");
          expect(scanInPieces(bytes, [STRICT_BYTES, ...sizes, 1], true).heard).toEqual(whole.heard);
        },
      ),
      { numRuns: amount(3000) },
    );
  }, 60_000);

  it("tells members by depth, with their bytes where they were kept", () => {
    const long = `"${"x".repeat(5000)}"`;
    const { heard } = scanInPieces(bytesOf(`{"a":[1,{"b":null}],"c":${long}}`), [11], true);
    expect(heard).toEqual([
      ...["1 key a", "2 number 1 1"],
      ...["3 key b", "3 null 4 null", "2 object 10 -", "1 array 14 -", "1 key c", "1 string 5002 -", "0 object 5027 -"],
    ]);
  });

  it("decodes as the whole-body path does", () => {
    fc.assert(
      fc.property(jsonBytes, (bytes) => {
        let parsed: ParsedJson | { fault: string };
        try {
          parsed = { value: JSON.parse(utf8().decode(bytes)) };
        } catch {
          parsed = { fault: "not-json" };
        }
        expect(parseJson(bytes)).toEqual(parsed);
      }),
      { numRuns: amount(5000) },
    );
  }, 60_000);
});
