// Whoever sits before the terminal: asked where there is one.
import { createInterface } from "node:readline/promises";

export interface Terminal {
  /** Without spaces around it. */
  ask(question: string): Promise<string>;
  say(text: string): void;
}

/** Undefined where nobody can answer: in CI, or behind a pipe. Between two questions the terminal is wrangler's. */
export function openTerminal(): Terminal | undefined {
  if (!process.stdin.isTTY) return undefined;
  return {
    ask: async (question) => {
      const lines = createInterface({ input: process.stdin, output: process.stdout });
      try {
        return (await lines.question(question)).trim();
      } finally {
        lines.close();
      }
    },
    say: (text) => console.log(text),
  };
}
