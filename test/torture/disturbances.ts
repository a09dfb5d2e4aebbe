// The disturbances there are: of the stores, of webhooks' receivers, of calls of objects, of the clock.
import { picker } from "./chance.ts";
import type { Disturbance } from "./disturbance.ts";
import { tell } from "./door.ts";
import type { StandIn, Trouble } from "./stand-in.ts";
import type { WebhookReceiver } from "./webhook-receiver.ts";

const storeTroubles: readonly Trouble[] = ["fails", "refuses", "is slow"];
const minuteMs = 60_000;
/** In a run of five minutes or more; a shorter one's is shorter in proportion. */
const noWrites = { lastsMs: minuteMs, ofRun: 0.2 };

export interface Disturbed {
  readonly stores: readonly StandIn[];
  readonly receiver: WebhookReceiver;
  readonly gateway: string;
  readonly runMs: number;
}

export function disturbancesOf({ stores, receiver, gateway, runMs }: Disturbed): Disturbance[] {
  const kv = stores.filter(({ store }) => store === "kv");
  return [
    ...stores.map(storeTrouble),
    ...kv.map((store) => writesUsedUp(store, runMs)),
    hangingReceivers(receiver),
    lostCalls(gateway),
    clockSteps(gateway),
  ];
}

function storeTrouble(store: StandIn): Disturbance {
  return {
    name: "stores",
    afflicts: "stores",
    rests: [3000, 9000],
    lasts: [1000, 4000],
    async begin(next) {
      const kind = picker(next)(storeTroubles);
      await store.haveTrouble(kind);
      return `${store.store} ${kind}`;
    },
    end: () => store.haveTrouble(undefined),
  };
}

/** Once or twice in a run, for as long as it takes until the product must have kept elsewhere what it could not write. */
function writesUsedUp(store: StandIn, runMs: number): Disturbance {
  const lastsMs = Math.min(noWrites.lastsMs, runMs * noWrites.ofRun);
  return {
    name: "no writes",
    afflicts: "stores",
    rests: [runMs * 0.1, runMs * 0.6],
    lasts: [lastsMs, lastsMs],
    async begin() {
      store.takesNothing = true;
      return `${store.store} takes nothing`;
    },
    async end() {
      store.takesNothing = false;
    },
  };
}

/** For less than what a delivery waits for an answer, or for more. */
function hangingReceivers(receiver: WebhookReceiver): Disturbance {
  return {
    name: "hanging receivers",
    afflicts: "receivers",
    rests: [5000, 15_000],
    lasts: [1000, 6000],
    async begin() {
      receiver.allHang = true;
      return "all receivers hang";
    },
    async end() {
      receiver.allHang = false;
    },
  };
}

function lostCalls(gateway: string): Disturbance {
  return {
    name: "lost calls",
    afflicts: "objects",
    rests: [4000, 10_000],
    lasts: [1000, 3000],
    async begin(next) {
      await tell(gateway, { lostEvery: 3 + Math.floor(next() * 10) });
      return "calls of objects are lost";
    },
    end: () => tell(gateway, { lostEvery: 0 }),
  };
}

/** Steps far longer than they last, so that what waits for the clock to catch up is seen to wait. */
function clockSteps(gateway: string): Disturbance {
  return {
    name: "clock steps",
    afflicts: "the clock",
    rests: [6000, 15_000],
    lasts: [1000, 4000],
    async begin(next) {
      const stepMs = minuteMs * (20 + Math.floor(next() * 70));
      const isBack = next() < 0.5;
      await tell(gateway, { clockMs: isBack ? -stepMs : stepMs });
      return `the clock steps ${isBack ? "back" : "ahead"}`;
    },
    end: () => tell(gateway, { clockMs: 0 }),
  };
}
