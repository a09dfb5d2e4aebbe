// What was said about each job, by whom and when: told where a job is lost, and not before.
import { admissionPattern } from "../../src/gateway/jobs/admission-id.ts";

const names = new RegExp(`\\bjob-\\d+-\\d+\\b|\\b${admissionPattern}\\b`, "g");
/** Of an entry: an answer may be large. */
const mostCharacters = 600;

export class History {
  readonly #entries: string[] = [];
  /** By upstream id and by admission, which entries name it. */
  readonly #naming = new Map<string, Set<number>>();
  readonly #ofAll: number[] = [];

  note(text: string): void {
    const named = text.match(names);
    if (!named) return;
    const at = this.#entries.push(`${Date.now()} ${text.slice(0, mostCharacters)}`) - 1;
    for (const name of named) {
      const naming = this.#naming.get(name) ?? new Set();
      this.#naming.set(name, naming.add(at));
    }
  }

  /** What befalls all jobs. */
  noteForAll(text: string): void {
    this.#ofAll.push(this.#entries.push(`${Date.now()} ${text}`) - 1);
  }

  /** What names any of them, and what went wrong meanwhile, as it came. */
  of(jobs: Iterable<string>): string[] {
    const at = new Set([...jobs].flatMap((name) => [...(this.#naming.get(name) ?? [])]));
    const [first, last] = [Math.min(...at), Math.max(...at)];
    for (const index of this.#ofAll) if (index > first && index < last) at.add(index);
    return [...at].sort((one, other) => one - other).map((index) => this.#entries[index] ?? "");
  }
}

/** Of this process, where all but the gateway lives. */
export const history = new History();
