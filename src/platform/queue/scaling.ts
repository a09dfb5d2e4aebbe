// How many workers an endpoint's scaler wants. It is only shown: no machine is started here.
import type { EndpointSettings } from "./endpoint-settings.ts";

export interface Load {
  /** Jobs of low priority call for no worker. */
  readonly waiting: number;
  readonly running: number;
  /** How long the job that waits longest has waited. */
  readonly longestWaitMs: number;
}

export function workersWanted({ workersMin, workersMax, managed }: EndpointSettings, load: Load): number {
  const { type, value } = managed?.scaler ?? { type: "REQUEST_COUNT", value: 1 };
  return Math.min(workersMax, Math.max(workersMin, wanted(type, value, load)));
}

function wanted(type: "QUEUE_DELAY" | "REQUEST_COUNT", value: number, load: Load): number {
  if (type === "REQUEST_COUNT") return Math.ceil((load.waiting + load.running) / value);
  const late = load.waiting > 0 && load.longestWaitMs >= value * 1000;
  return load.running + (late || (load.running === 0 && load.waiting > 0) ? 1 : 0);
}
