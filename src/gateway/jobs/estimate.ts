// What a job would reserve, before it is asked for: the body is checked as `run` checks it, and goes nowhere.
import * as z from "zod";
import { microUsdAsUsd } from "../quota/amounts.ts";
import type { Envelope } from "./envelope.ts";
import type { JobCall } from "./job-call.ts";
import { openEnvelope } from "./submit.ts";

export const estimateSchema = z
  .object({
    model: z.string(),
    usd: z.number().describe("What would be reserved: the price, or the most that this input can cost."),
  })
  .meta({ id: "Estimate" });

export async function estimate(call: JobCall): Promise<Response> {
  const reserved = await reservedBy(await openEnvelope(call, "run"));
  return Response.json({ model: call.target.name, usd: microUsdAsUsd(reserved) } satisfies z.output<
    typeof estimateSchema
  >);
}

/** A large body says its price with its last byte: it is read to its end, and dropped. */
async function reservedBy({ digest, reserveMicroUsd, relayed }: Envelope): Promise<number> {
  const isWhole = digest === undefined;
  if (isWhole) return reserveMicroUsd;
  let reserved = reserveMicroUsd;
  const accept = async (checked: { readonly reserveMicroUsd: number }) => {
    reserved = checked.reserveMicroUsd;
  };
  const { body, upload } = relayed(undefined, { digested: false, accept });
  const drained = (body as ReadableStream).pipeTo(new WritableStream()).catch(() => {});
  await upload?.sent;
  await drained;
  return reserved;
}
