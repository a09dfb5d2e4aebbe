// What the Worker writes to its log, parsed.
import { vi } from "vitest";

type Line = Record<string, unknown>;

/** From here on, until the test ends: each line as it is written, as text and as JSON. */
export function watchLog(): { lines: Line[]; errors: Line[]; text: () => string } {
  const written: string[] = [];
  const into = (lines: Line[]) => (line: string) => {
    written.push(line);
    lines.push(JSON.parse(line) as Line);
  };
  const lines: Line[] = [];
  const errors: Line[] = [];
  vi.spyOn(console, "log").mockImplementation(into(lines));
  vi.spyOn(console, "error").mockImplementation(into(errors));
  return { lines, errors, text: () => written.join("\n") };
}
