// The payers' meters with somebody who listens in: each call is noted, and may be lost on its way there or back.
import { env } from "cloudflare:workers";
import type { Metering } from "../../../src/gateway/quota/metering.ts";

type Name = keyof Metering;
export interface Heard {
  readonly name: Name;
  readonly args: readonly unknown[];
}

export class MeterTap {
  readonly calls: Heard[] = [];
  /** Asked before each call: whether its question is lost, or its answer, or nothing ever comes of it. */
  lose: (call: Heard) => "question" | "answer" | "all" | undefined = () => undefined;

  /** Answers in the meter's place, where it is not undefined. */
  instead: (call: Heard) => unknown = () => undefined;

  /** Stands for the binding. */
  readonly namespace = {
    idFromName: (name: string) => env.USER_METER.idFromName(name),
    idFromString: (id: string) => env.USER_METER.idFromString(id),
    get: (id: DurableObjectId) => this.#tapped(env.USER_METER.get(id)),
    getByName: (name: string) => this.#tapped(env.USER_METER.getByName(name)),
  };

  #tapped(stub: object): object {
    return new Proxy(stub, {
      get:
        (target, name: Name) =>
        (...args: unknown[]) =>
          this.#pass(target, { name, args }),
    });
  }

  async #pass(target: object, call: Heard): Promise<unknown> {
    const lost = this.lose(call);
    this.calls.push(call);
    if (lost === "all") return new Promise(() => {});
    if (lost === "question") throw new Error("Network connection lost.");
    const said = this.instead(call);
    if (said !== undefined) return said;
    const answer = await (target as Record<Name, (...args: readonly unknown[]) => Promise<unknown>>)[call.name](
      ...call.args,
    );
    if (lost === "answer") throw new Error("Network connection lost.");
    return answer;
  }

  names(): Name[] {
    return this.calls.map(({ name }) => name);
  }

  of(name: Name): readonly (readonly unknown[])[] {
    return this.calls.filter((call) => call.name === name).map(({ args }) => args);
  }
}
