// A stored job as it is handed out: to its worker as a request, to its client with its output.
import { describeJob, type JobRow } from "./job.ts";
import { bodyOf, type Payloads } from "./payloads.ts";
import type { Body, JobView } from "./views.ts";

/** The request as it came, without its closing brace: the id follows. */
export function requestOf(job: JobRow, payloads: Payloads): Body {
  return read(job.input, payloads.size(job.input) - 1, payloads);
}

export function viewOf(job: JobRow, payloads: Payloads, now: number): JobView {
  const { output } = job;
  return {
    head: describeJob(job, now),
    output: output === null ? null : read(output, payloads.size(output), payloads),
  };
}

function read(key: number, to: number, payloads: Payloads): Body {
  return bodyOf(payloads.read({ key, from: 0, to }), to);
}
