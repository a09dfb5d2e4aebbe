// A large answer on its way to the client: its id is replaced, its facts are read, all else stays as it was.
import { describe, expect, it, vi } from "vitest";
import { type AnswerScan, scanAnswer } from "../../src/json/answer-scan.ts";
import { SecretSearch } from "../../src/json/secret-search.ts";
import { bytesOf, cutSource, drain } from "./cut-source.ts";

type Wishes = Partial<Pick<AnswerScan, "conclude" | "forbidden">>;

async function pass(
  text: string,
  sizes: readonly number[],
  replaceId: AnswerScan["replaceId"] = () => "<id>",
  fails = false,
  wishes: Wishes = {},
) {
  const { source, log } = cutSource(bytesOf(text), sizes, fails);
  const asked: string[] = [];
  const { stream, done } = scanAnswer({
    source,
    limitBytes: 1024 * 1024,
    mediaKeys: ["image_url", "video_url", "audio_url", "result", "url"],
    bufferBytes: 32 * 1024,
    replaceId: (id) => {
      asked.push(id);
      return replaceId(id);
    },
    ...wishes,
  });
  const [outcome, sent] = await Promise.all([done, drain(stream)]);
  return { ...outcome, text: new TextDecoder().decode(sent.bytes), complete: sent.complete, asked, log };
}

const rows: [string, string, string, object][] = [
  [
    "a finished image",
    '{"id":"a-1","status":"OK","output":{"image_url":"https://x/1","cost":0.02},"delayTime":5,"executionTime":7}',
    '{"id":"<id>","status":"OK","output":{"image_url":"https://x/1","cost":0.02},"delayTime":5,"executionTime":7}',
    { id: "a-1", status: "OK", cost: 0.02, delayTime: 5, executionTime: 7, media: { image_url: "https://x/1" } },
  ],
  [
    "members in another order, blanks and escapes",
    ' { "output" : { "cost":1e-3 , "video\\u005furl" : "https:\\/\\/x\\/1" } ,\n "st\\u0061tus":"OK", "id" : "a\\u002d1" } ',
    ' { "output" : { "cost":1e-3 , "video\\u005furl" : "https:\\/\\/x\\/1" } ,\n "st\\u0061tus":"OK", "id" : "<id>" } ',
    { id: "a-1", status: "OK", cost: 0.001, media: { video_url: "https://x/1" } },
  ],
  [
    "text output",
    '{"id":"a","output":[{"choices":[{"id":"x","url":"y","cost":9}],"cost":0.5,"url":"z"},{"cost":7}]}',
    '{"id":"<id>","output":[{"choices":[{"id":"x","url":"y","cost":9}],"cost":0.5,"url":"z"},{"cost":7}]}',
    { id: "a", cost: 0.5 },
  ],
  [
    "the same names elsewhere",
    '{"input":{"id":"x","image_url":"y","status":"z"},"image_url":"w","output":{"id":"v","deep":{"url":"u","cost":1}}}',
    '{"image_url":"w","output":{"id":"v","deep":{"url":"u","cost":1}}}',
    {},
  ],
  [
    "members twice, the last one counting",
    '{"id":"a","id":"b","output":{"cost":1},"output":{"url":"c"},"status":"X","status":null}',
    '{"id":"<id>","id":"<id>","output":{"cost":1},"output":{"url":"c"},"status":"X","status":null}',
    { id: "b", media: { url: "c" } },
  ],
  ["values of other types", '{"id":7,"status":[],"output":{"url":{},"cost":"1"},"delayTime":"5"}', "", { media: {} }],
  ["an output that is a string", '{"output":"https://x/1","id":null}', "", {}],
  ["an array", '[{"id":"a","output":{"url":"b"}}]', "", {}],
];

describe("a large answer", () => {
  it.each(rows)("with %s, wherever it is cut", async (_, text, expected, facts) => {
    const sizes = [
      [text.length],
      [1],
      [2],
      [7, 3],
      ...Array.from({ length: text.length }, (_, i) => [i + 1, text.length]),
    ];
    for (const cut of sizes) {
      const answer = await pass(text, cut);
      expect(answer).toMatchObject({ text: expected || text, complete: true, facts });
      expect(Object.keys(answer.facts).sort()).toEqual(Object.keys(facts).sort());
      expect(answer.fault).toBeUndefined();
    }
  });

  it("waits for the new id, quotes it, and leaves its own where there is none", async () => {
    const text = '{"id":"a","output":{"url":"b","cost":1},"status":"C"}';
    const late = async () => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return 'quoted "as" needed\n';
    };
    const answer = await pass(text, [9], late);
    expect(answer.text).toBe('{"id":"quoted \\"as\\" needed\\n","output":{"url":"b","cost":1},"status":"C"}');
    expect(answer.asked).toEqual(["a"]);
    expect(await pass(text, [9], async () => undefined)).toMatchObject({ text, complete: true });
  });

  it("is concluded once it is whole, and before its last byte", async () => {
    const text = '{"id":"a","output":{"url":"b","size":7}}';
    const told: unknown[] = [];
    const conclude: Wishes["conclude"] = async (facts) => void told.push({ ...facts });
    expect(await pass(text, [9], undefined, false, { conclude })).toMatchObject({ complete: true });
    expect(told.splice(0)).toEqual([{ id: "a", size: 7, media: { url: "b" } }]);
    expect(await pass(text.slice(0, -1), [9], undefined, false, { conclude })).toMatchObject({ complete: false });
    expect(told).toEqual([]);
    const refused = await pass(text, [9], undefined, false, { conclude: () => Promise.reject(new Error("no")) });
    expect(refused).toMatchObject({ complete: false, fault: "stopped" });
    expect(refused.text.endsWith("}}")).toBe(false);
  });

  it("passes a data URL and long bytes as they are", async () => {
    const text = JSON.stringify({ id: "a", output: { url: `data:${"x".repeat(20_000)}`, rows: "é".repeat(30_000) } });
    for (const sizes of [[text.length], [1000], [8191]]) {
      const answer = await pass(text, sizes);
      expect(answer.text).toBe(text.replace('"a"', '"<id>"'));
      expect(answer.asked).toEqual(["a"]);
    }
  });

  it.each([
    ["truncated", '{"id":"a","output":{}'],
    ["garbage", '{"id":"a","output":}'],
    ["HTML", "<html>"],
    ["empty", ""],
  ])("that is %s never looks complete", async (_, text) => {
    for (const sizes of [[text.length || 1], [1]])
      expect(await pass(text, sizes)).toMatchObject({ complete: false, fault: "not-json" });
  });

  it("that breaks off is told with what was seen", async () => {
    const answer = await pass('{"id":"a","status":"COMPLETED",', [4], undefined, true);
    expect(answer).toMatchObject({ complete: false, fault: "source-gone", facts: { id: "a", status: "COMPLETED" } });
  });

  it("is cut off rather than sent with an id that could not be replaced", async () => {
    const answer = await pass('{"id":"secret","output":{}}', [5], () => Promise.reject(new Error("no")));
    expect(answer).toMatchObject({ complete: false, fault: "stopped" });
    expect(answer.text).not.toContain("secret");
  });

  it("stops in front of what is forbidden, wherever it is cut", async () => {
    const text = '{"id":"a","output":{"said":"the key of all: k-0123456789","more":"k-012345678, and no more"}}';
    for (const sizes of [[1], [2], [7], [31], [text.length]]) {
      const found = vi.fn();
      const said = await pass(text, sizes, () => undefined, false, {
        forbidden: { search: new SecretSearch(["k-0123456789"]), found },
      });
      expect(said).toMatchObject({ complete: false, fault: "stopped" });
      expect(found).toHaveBeenCalledOnce();
      expect(text.slice(0, text.indexOf("k-"))).toContain(said.text);
      const unsaid = await pass(text, sizes, () => undefined, false, {
        forbidden: { search: new SecretSearch(["k-01234567890"]), found },
      });
      expect(unsaid).toMatchObject({ complete: true, text });
    }
  });

  it.each([
    ['{"id":"a","input":{"x":1},"status":"S","webhook":"https://h"}', '{"id":"a","status":"S"}'],
    ['{"input":[1,{"id":2}],"webhook":"https://h", "id":"a","status":"S"}', '{ "id":"a","status":"S"}'],
    ['{ "webh\\u006fok" : "https://h" , "id":"a"\n, "input":null ,\n"status":"S"}', '{  "id":"a" ,\n"status":"S"}'],
    ['{"webhook":"https://h"}', "{}"],
    ['{"a":1,"webhook":"https://h" }', '{"a":1 }'],
    ['{"output":{"input":1,"webhook":2},"input":1,"input":2}', '{"output":{"input":1,"webhook":2}}'],
  ])("says nothing back of its request, wherever it is cut", async (text, left) => {
    for (const sizes of [[1], [2], [3], [5], [7], [text.length]]) {
      const said = await pass(text, sizes, () => undefined);
      expect(JSON.parse(said.text)).toEqual(JSON.parse(left));
      expect(said.text.replaceAll(/\s/g, "")).toBe(left.replaceAll(/\s/g, ""));
    }
  });

  it("does not hold what it takes out", async () => {
    const text = `{"input":"${"x".repeat(900_000)}","id":"a","output":{}}`;
    expect(await pass(text, [50_000], () => undefined)).toMatchObject({
      complete: true,
      text: '{"id":"a","output":{}}',
    });
  });

  it("is no longer read when the client leaves", async () => {
    const text = JSON.stringify({ id: "a", output: { rows: "x".repeat(500_000) } });
    const { source, log } = cutSource(bytesOf(text), [1000]);
    const { stream, done } = scanAnswer({ source, limitBytes: 1e6, mediaKeys: [], replaceId: () => undefined });
    const reader = stream.getReader();
    await reader.read();
    await reader.cancel();
    expect(await done).toEqual({ facts: { id: "a" }, fault: "sink-gone" });
    expect(log.read).toBeLessThan(10_000);
  });
});
