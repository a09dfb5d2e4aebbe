// The gateway that hostile clients and upstreams meet: workerd alone, which is quick to start; for test/full `npm start`.
import { Server } from "../../support/serve.ts";
import { NpmStart } from "./npm-start.ts";
import { Unhurt } from "./unhurt.ts";

export interface Gateway {
  readonly url: string;
  readonly port: number;
  readonly log: readonly string[];
  memory(): { peak: number; now: number };
  forgetPeak(): void;
  stop(): Promise<void>;
}

/** The door is a module before the bundle, where workerd serves it alone. */
export async function startGateway(settings: Readonly<Record<string, string>>, door?: string): Promise<Gateway> {
  if (process.env["SERVED_BY"] !== "npm start") return Server.start({ settings, door });
  const server = await NpmStart.start({ settings });
  const unhurt = new Unhurt(server);
  return Object.assign(server, {
    stop: async () => {
      await unhurt.expect();
      await NpmStart.prototype.stop.call(server);
    },
  });
}
