// What the doctor found: a table of what was looked at, how it is, and what to do about it.

export interface Finding {
  readonly what: string;
  /** `warning` is for what may be meant so; `left out` for what could not be looked at. */
  readonly is: "ok" | "warning" | "fault" | "left out";
  /** What was seen. */
  readonly seen: string;
  readonly todo?: string;
}

export const ok = (what: string, seen: string): Finding => ({ what, is: "ok", seen });
export const warning = (what: string, seen: string, todo: string): Finding => ({ what, is: "warning", seen, todo });
export const fault = (what: string, seen: string, todo: string): Finding => ({ what, is: "fault", seen, todo });
export const leftOut = (what: string, seen: string, todo: string): Finding => ({ what, is: "left out", seen, todo });

export function isHealthy(findings: readonly Finding[]): boolean {
  return findings.every(({ is }) => is !== "fault");
}

/** One line each; what to do stands below its line. */
export function writeTable(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ what }) => what.length));
  const lines = findings.map(({ what, is, seen, todo }) => {
    const line = `${is.padEnd("left out".length)}  ${what.padEnd(width)}  ${onOneLine(seen)}`;
    return todo === undefined ? line : `${line}\n${" ".repeat("left out".length)}  → ${todo}`;
  });
  const faults = findings.filter(({ is }) => is === "fault").length;
  const unseen = findings.filter(({ is }) => is === "left out").length;
  const rest = unseen === 0 ? "" : ` ${unseen} could not be looked at.`;
  return `${lines.join("\n")}\n\n${faults === 0 ? "No fault was found." : `Faults: ${faults}.`}${rest}`;
}

function onOneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}
