// The gateway that hostile clients and upstreams meet: workerd alone, which is quick to start; for test/full `npm start`.
import { describe, it } from "vitest";
import { Server } from "../../support/serve.ts";
import { NpmStart, type NpmStartOptions } from "./npm-start.ts";
import { Unhurt } from "./unhurt.ts";

export interface Gateway {
  readonly url: string;
  readonly port: number;
  readonly log: readonly string[];
  memory(): { peak: number; now: number };
  forgetPeak(): void;
  stop(): Promise<void>;
}

/** Set by test/full: everything meets `npm start`, in rounds. */
export const inRounds = () => process.env["SERVED_BY"] === "npm start";
/** Of those that run now. */
const watched = new Map<NpmStart, Unhurt>();

/** The door is a module before the bundle, where workerd serves it alone. */
export async function startGateway(settings: Readonly<Record<string, string>>, door?: string): Promise<Gateway> {
  return inRounds() ? (await startByNpm({ settings })).server : Server.start({ settings, door });
}

export async function startByNpm(options: NpmStartOptions): Promise<{ server: NpmStart; unhurt: Unhurt }> {
  const server = await NpmStart.start(options);
  const unhurt = new Unhurt(server);
  watched.set(server, unhurt);
  const stop = () => {
    watched.delete(server);
    return NpmStart.prototype.stop.call(server);
  };
  return { server: Object.assign(server, { stop }), unhurt };
}

const kept: ((round: number) => void)[] = [];

/** These tests, once; in rounds they wait for those of other files. */
export function describeOnce(tests: (round: number) => void): void {
  if (inRounds()) kept.push(tests);
  else tests(0);
}

/** All that waited, once and so many times more: what the first round leaves in memory, the later ones find again. */
export function describeRounds({ more }: { more: number }): void {
  const all = kept.splice(0);
  describe.each(Array.from({ length: 1 + more }, (_, round) => round))("round %i", (round) => {
    for (const tests of all) tests(round);

    it("leaves `npm start` unhurt", async () => {
      const looks = [...watched.values()].map((one) => (round === 0 ? one.settle() : one.expect()));
      await Promise.all(looks);
    });
  });
}
