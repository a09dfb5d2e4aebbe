// What the log line says of a job that an answer tells of.
import { isJobState } from "../../contract/states.ts";
import type { Exchange } from "../../http/exchange.ts";

/** Only a status of the contract's: an upstream may answer with any word. */
export function logJob(exchange: Exchange, status: string): void {
  if (isJobState(status)) exchange.job = status;
}
