// What steers an endpoint's queue: how many workers, for how long a job may run, how much the limits lift.
import * as z from "zod";
import { limits } from "../../contract/limits.ts";

export const endpointSettingsSchema = z.object({
  workersMin: z.int().min(0).max(1000).default(1),
  workersMax: z.int().min(0).max(1000).default(100),
  idleTimeoutSeconds: z.int().min(1).max(3600).default(5),
  executionTimeoutMs: z
    .int()
    .min(limits.executionTimeoutMs.min)
    .max(limits.executionTimeoutMs.max)
    .default(limits.executionTimeoutMs.default),
  requestsPerWorker: z.int().min(0).max(100_000).default(1),
  /** The endpoint was deleted: nothing is taken any more. */
  closed: z.boolean().default(false),
  /** Of an endpoint that was made by the management interface: its scaler, and the meter that its run time goes to. */
  managed: z
    .object({
      scaler: z.object({ type: z.enum(["QUEUE_DELAY", "REQUEST_COUNT"]), value: z.int().min(1) }),
      meter: z.int(),
    })
    .optional(),
});
export type EndpointSettings = z.output<typeof endpointSettingsSchema>;

export const defaultEndpointSettings: EndpointSettings = endpointSettingsSchema.parse({});

/** As they were configured last. */
export function readSettings(sql: SqlStorage): EndpointSettings {
  const row = sql.exec<{ json: string }>("SELECT json FROM settings WHERE id = 1").toArray()[0];
  return row ? endpointSettingsSchema.parse(JSON.parse(row.json)) : defaultEndpointSettings;
}

export function writeSettings(sql: SqlStorage, settings: EndpointSettings): void {
  sql.exec("INSERT OR REPLACE INTO settings (id, json) VALUES (1, ?)", JSON.stringify(settings));
}
