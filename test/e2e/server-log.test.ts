// What people and tools read of a served Worker's log.
import { beforeEach, describe, expect, it } from "vitest";
import { sayUnknown, sayUnread } from "../../src/cli/dev-vars.ts";
import { ServerLog } from "../../src/cli/log.ts";
import { requestLine } from "../../src/cli/request-line.ts";

const at = new Date(2026, 10, 22, 14, 3, 22);
const exchange = { requestId: "r-1", method: "POST", status: 200, ms: 412 };

let lines: string[];
beforeEach(() => {
  lines = [];
});
function hear(message: string, { level = "log", json = false } = {}): void {
  const log = new ServerLog({ json, colours: false }, (line) => lines.push(line));
  log.hear({ level, message, timestamp: at.getTime() });
}

describe("for people, a request", () => {
  it("is one line with all that its exchange says", () => {
    const path = "/v2/qwen-image-t2i/runsync";
    const all = { ...exchange, path, model: "qwen-image-t2i", job: "COMPLETED", cost: 0.02, cache: "MISS" };
    expect(requestLine(all, at, false)).toBe(
      "14:03:22 POST    200   412 ms  /v2/qwen-image-t2i/runsync  COMPLETED  0.02 USD  MISS",
    );
  });

  it("that was refused says its code; the model is named where the path does not", () => {
    const refused = { ...exchange, status: 429, ms: 3, route: "/openai/v1/chat", model: "qwen3", code: "RATE_LIMITED" };
    expect(requestLine(refused, at, false)).toBe("14:03:22 POST    429     3 ms  /openai/v1/chat  qwen3  RATE_LIMITED");
  });

  it("is coloured by its status, where there are colours", () => {
    expect(requestLine({ ...exchange, status: 500 }, at, true)).toContain("\u001b[31m500\u001b[39m");
  });

  it("keeps its column whatever its method is", () => {
    const ending = (method: string) => requestLine({ ...exchange, method, path: "/" }, at, false).slice(-16);
    expect(ending("OPTIONS")).toBe(ending("GET"));
  });

  it("that the Worker makes to itself is for tools alone, until it fails", () => {
    const notice = { ...exchange, path: "/hooks/a", inner: true };
    hear(JSON.stringify(notice));
    hear(JSON.stringify(notice), { json: true });
    hear(JSON.stringify({ ...notice, status: 404, code: "NOT_FOUND" }));
    hear(JSON.stringify({ ...notice, code: "UPSTREAM_TRUNCATED" }));
    expect(lines).toEqual([
      JSON.stringify(notice),
      "14:03:22 POST    404   412 ms  /hooks/a  NOT_FOUND  inner",
      "14:03:22 POST    200   412 ms  /hooks/a  UPSTREAM_TRUNCATED  inner",
    ]);
  });

  it("is the Worker's own line for tools", () => {
    hear(JSON.stringify(exchange), { json: true });
    hear(JSON.stringify(exchange));
    expect(lines).toEqual([JSON.stringify(exchange), "14:03:22 POST    200   412 ms"]);
  });
});

describe("for people, a wrong setting", () => {
  it("is a sentence", () => {
    const faults = [{ setting: "BUDGET_DAY_USD", problem: "expected an amount in USD" }];
    hear(JSON.stringify({ requestId: "r-1", code: "MISCONFIGURED", faults }), { level: "error" });
    expect(lines).toEqual(["The setting BUDGET_DAY_USD: expected an amount in USD"]);
  });
});

describe("for people, an alarm that failed", () => {
  const message = (stack: string[]) => JSON.stringify({ alarm: "user-meter", error: "TypeError", stack });

  it("is told once for each place, though it rings again each second", () => {
    const log = new ServerLog({ json: false, colours: false }, (line) => lines.push(line));
    log.exceptions.follow(JSON.stringify({ version: 3, sources: ["../src/a.ts"], names: [], mappings: "AAAA" }));
    const line = message(["    at UserMeter.alarm (index.js:1:100)"]);
    for (const _ of [1, 2, 3]) log.hear({ level: "error", message: line, timestamp: at.getTime() });
    expect(lines).toEqual(["Uncaught TypeError in the alarm of user-meter\n    at src/a.ts:1:1"]);
  });

  it("outside the source is told as it comes", () => {
    hear(message(["    at native"]), { level: "error" });
    expect(lines).toEqual(["alarm: user-meter, error: TypeError"]);
  });
});

describe("for people, a warning of the Worker", () => {
  it("is a sentence of its members", () => {
    hear(JSON.stringify({ binding: "IMAGES", problem: "a result was not kept", status: 503 }), { level: "warn" });
    expect(lines).toEqual(["binding: IMAGES, problem: a result was not kept, status: 503"]);
  });
});

describe("what a Worker prints", () => {
  it.each(["a word", "{not json", "[1]", "null", "exception"])("is printed as it is: %s", (message) => {
    for (const level of ["log", "info", "warn", "error"]) hear(message, { level });
    expect(lines).toEqual([message, message, message, message]);
  });

  it.each([
    ["warning", "NOSENTRY SQLite alarm overdue, running despite AlarmManager mismatch"],
    ["info", "uncaught exception; exception = workerd/jsg/value.h:1477: failed: jsg.Error: thrown\nstack: workerd@1"],
    ["info", "exception = workerd/jsg/value.h:1477: failed: remote.jsg.Error: thrown\nstack: workerd@36de607"],
    ["error", "Uncaught exception: workerd/jsg/value.h:1477: failed: remote.jsg.Error: thrown\nstack: workerd@36de607"],
    ["error", "stack: /clone/workerd@5535586 /lib/libc.so.6@27304"],
    ["error", "kj::getCaughtExceptionAsKj() = kj/async-io-unix.c++:186: disconnected: ::write(fd, …): Broken pipe"],
  ])("is not what the runtime prints of itself at level %s", (level, message) => {
    hear(message, { level });
    expect(lines).toEqual([]);
  });
});

describe("a setting that nobody knows", () => {
  it.each([
    ["ANONYMUS", ".dev.vars sets ANONYMUS, which is no setting. Did you mean ANONYMOUS?"],
    ["app_secret", ".dev.vars sets app_secret, which is no setting. Did you mean APP_SECRET?"],
    ["SOMETHING_ELSE", ".dev.vars sets SOMETHING_ELSE, which is no setting."],
  ])("is named: %s", (name, sentence) => {
    expect(sayUnknown(".dev.vars", { [name]: "", LOCAL: "true" })).toEqual([sentence]);
  });
});

describe("a line of .dev.vars", () => {
  const unread = (text: string) => sayUnread(".dev.vars", text);

  it.each(["A secret", "SIGNING_SECRET: a secret", "=a secret", "export A"])(
    "that sets nothing is told: %s",
    (line) => {
      const told = ["Line 2 of .dev.vars is no NAME=value, and is left out."];
      expect(unread(`LOCAL=true\n${line}\nANONYMOUS=off`)).toEqual(told);
      expect(unread(`LOCAL=true\r\n${line}\r\nANONYMOUS=off`)).toEqual(told);
    },
  );

  it.each(['"', "'", "`"])("whose quote %s would take the next lines along is told", (quote) => {
    expect(unread(`APP_SECRET=${quote}a secret\nB=${quote}`)[0]).toBe(
      `Line 1 of .dev.vars opens a quote, ${quote}, that it does not close.`,
    );
  });

  it("that can be read is not told", () => {
    expect(unread('# A secret\n\n  \nexport LOCAL = true\nA=\nB==b\nC="x" # c\nD=\'it"s\'\nE=x"')).toEqual([]);
  });
});
