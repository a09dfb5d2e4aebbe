// What the services of an account work with: changes that happen whole, and the tasks that follow from them.
import type { TaskKind } from "./reconciler.ts";

export interface Transactions {
  readonly account: string;
  change<T>(act: () => T): T;
  /** Called inside a change: the task is stored with it, and is done at some time even if this object restarts. */
  enqueue(kind: TaskKind, id: string): void;
  /** Tries the task now. */
  perform(kind: TaskKind, id: string): Promise<boolean>;
}
