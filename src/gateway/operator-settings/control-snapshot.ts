// The copy of CONTROL's settings that KV keeps near every isolate, for one that has not read CONTROL yet or not for a while.
import * as z from "zod";
import { nameOfFault } from "../../errors.ts";
import { inTime } from "../../isolate/in-time.ts";
import { once } from "../../isolate/once.ts";
import type { ControlChanges } from "./control-view.ts";
import { rulesSchema } from "./rules.ts";

/** What a later version of the code writes in another way is no snapshot to this one. */
const format = 1;
/** KV takes no shorter age. */
const cacheSeconds = 30;
const timeoutMs = 2_000;

export function snapshotKey(): string {
  return "control/snapshot";
}

const snapshotSchema = once(() => {
  const rows = <T>(value: z.ZodType<T>) => z.array(z.object({ name: z.string(), value }));
  const modelSwitch = z.object({
    enabled: z.boolean(),
    passthrough: z.boolean(),
    maxUsd: z.number().min(0).exactOptional(),
  });
  return z.object({
    format: z.literal(format),
    version: z.int().min(0),
    plans: rows(z.object({ rules: rulesSchema })),
    models: rows(modelSwitch),
    users: rows(z.number()),
    tokens: rows(z.number()),
    ceilings: rows(z.number()),
  });
});

/** Two that are told together may arrive in any order: whoever publishes waits for one before the next. */
export async function publishSnapshot(kv: KVNamespace, { restarted: _, ...all }: ControlChanges): Promise<boolean> {
  try {
    await kv.put(snapshotKey(), JSON.stringify({ format, ...all }));
    return true;
  } catch (error) {
    console.warn(
      JSON.stringify({ binding: "IMAGES", problem: "CONTROL was not published", error: nameOfFault(error) }),
    );
    return false;
  }
}

/** Undefined where there is none that this version of the code can read, or KV does not answer. */
export async function readSnapshot(kv: KVNamespace): Promise<ControlChanges | undefined> {
  try {
    const value = await inTime(timeoutMs, kv.get(snapshotKey(), { type: "json", cacheTtl: cacheSeconds }));
    if (value === null) return undefined;
    const { format: _, ...all } = snapshotSchema().parse(value);
    return { restarted: false, ...all };
  } catch (error) {
    console.warn(JSON.stringify({ binding: "IMAGES", problem: "no snapshot was read", error: nameOfFault(error) }));
    return undefined;
  }
}
