// `npm run race`: what an exact quota is, seen in five seconds. It ends with 0 only if exactly as many passed as may.
import { barOf, drawLive, lineOf } from "./bars.ts";
import { type Contestant, calls, limit, withContestants } from "./contest.ts";
import { places } from "./serve-kv-counter.ts";

const explained = `
Both run in workerd on this machine. Sluice is the built Worker, with the Durable Object that it would have on Cloudflare.
KV is a stand-in that does what Cloudflare says of it: a place of the edge keeps what it read for a minute and sees another
place's writes only then. The calls come in at ${places} places. Left out is what would make the counter count still less: KV's
distance, and its limit of one write a second for a key.`;

console.log(`${calls} calls at once, by a user who may make ${limit} a day. Both gateways are being started.\n`);
const isExact = await withContestants(async (gateway, kv) => {
  const stop = process.stdout.isTTY ? drawLive([gateway, kv]) : () => {};
  await Promise.all([gateway.race(), kv.race()]);
  stop();
  if (!process.stdout.isTTY) for (const one of [gateway, kv]) console.log(barOf(one));
  console.log(`\n${lineOf(gateway)}\n${lineOf(kv)}`);
  for (const one of [gateway, kv]) tellOddities(one);
  console.log(explained);
  return gateway.passed === limit && gateway.handedOver() === limit && gateway.refused === calls - limit;
});
process.exit(isExact ? 0 : 1);

/** What never happens, and must not be hidden if it does. */
function tellOddities({ name, passed, failed, handedOver }: Contestant): void {
  if (failed > 0) console.log(`${name}: ${failed} calls failed for another reason.`);
  if (handedOver() !== passed) console.log(`${name}: the model service was handed ${handedOver()} jobs.`);
}
