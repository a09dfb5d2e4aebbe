// Whoever sits before the terminal: asked where there is one.
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";

export interface Terminal {
  /** Without spaces around it. */
  ask(question: string): Promise<string>;
  /** The same, and nobody reads over the shoulder what is typed. */
  askSecret(question: string): Promise<string>;
  say(text: string): void;
}

/** Undefined where nobody can answer: in CI, or behind a pipe. Between two questions the terminal is wrangler's. */
export function openTerminal(): Terminal | undefined {
  if (!process.stdin.isTTY) return undefined;
  return {
    ask: (question) => answerTo(question, "shown"),
    askSecret: (question) => answerTo(question, "hidden"),
    say: (text) => console.log(text),
  };
}

async function answerTo(question: string, typed: "shown" | "hidden"): Promise<string> {
  const { stdin: input, stdout } = process;
  // From here on the terminal itself shows nothing: what is typed is shown by the output.
  const lines = createInterface({ input, output: typed === "shown" ? stdout : nowhere(), terminal: true });
  // Nor does it send a signal.
  lines.once("SIGINT", () => process.kill(process.pid, "SIGINT"));
  try {
    if (typed === "shown") return (await lines.question(question)).trim();
    stdout.write(question);
    return (await lines.question("")).trim();
  } finally {
    lines.close();
    if (typed === "hidden") stdout.write("\n");
  }
}

function nowhere(): Writable {
  return new Writable({ write: (_piece, _encoding, done) => done() });
}
