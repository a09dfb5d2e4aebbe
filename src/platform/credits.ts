// Credits of accounts: what public models cost is taken from them, and at zero no more calls are let in.
import { repeated } from "../durable/remote.ts";
import { nameOfFault, Problem } from "../errors.ts";
import { tryParseJson } from "../http/small-body.ts";
import { BoundedMemory } from "../isolate/bounded-memory.ts";
import { concat } from "../json/concat.ts";
import { isObject } from "../json/is-object.ts";
import { findModel, type Model, type ModelInput, readChat, reserveChat } from "../models/index.ts";
import { everyAccount } from "../settings.ts";
import type { EndpointCall } from "./endpoint-call.ts";
import { accountOf, orUnavailable } from "./management/account-calls.ts";
import type { Guard } from "./platform-route.ts";
import type { JobRow } from "./queue/job.ts";
import type { PayloadRange, Payloads } from "./queue/payloads.ts";
import { readQueueName } from "./queue/queue-name.ts";

/**
 * Answers 401 where the account's credits are used up. Stands before what makes a job run. Jobs that run when the credits end are
 * finished, and debited too.
 */
export const inCredit: Guard<EndpointCall> = async ({ endpoint, account, config, env }) => {
  const credits = config.platformCredits.get(account) ?? config.platformCredits.get(everyAccount);
  if (credits === undefined || !findModel(endpoint)) return;
  if ((await orUnavailable(accountOf(env, account)).spent()) >= credits) {
    throw new Problem("NO_CREDITS", "the account has no credits left");
  }
};

const spentKey = "spent";
/** A larger answer is not read: it costs its price. */
const mostRead = 1024 * 1024;

interface DebitsDeps {
  readonly ctx: DurableObjectState;
  readonly env: Env;
  readonly model: Model;
  readonly payloads: () => Payloads;
}

/** What the jobs of a public model cost, whoever worked them: summed in its queue's storage, and told to the account. */
export class Debits {
  readonly #deps: DebitsDeps;
  /** By job, what an event of its stream said. */
  readonly #said = new BoundedMemory<number>(64 * 1024);

  constructor(deps: DebitsDeps) {
    this.#deps = deps;
    this.#tell();
  }

  get #spent(): number {
    return this.#deps.ctx.storage.kv.get<number>(spentKey) ?? 0;
  }

  streamed({ id }: JobRow, chunk: unknown): void {
    if (typeof chunk !== "string" || !/"(cost|usage)"/.test(chunk)) return;
    const costs = eventsIn(chunk).map((event) => this.#deps.model.costOf(event, {}));
    const said = costs.findLast((cost) => cost !== undefined);
    if (said !== undefined) this.#said.set(id, said, Number.POSITIVE_INFINITY);
  }

  completed(job: JobRow): void {
    this.#deps.ctx.storage.kv.put(spentKey, this.#spent + this.#costOf(job));
    this.#tell();
  }

  /** As the gateway settles it: what the answer says, else what is reserved for the input. */
  #costOf({ id, output: key, input, inputFrom, inputTo }: JobRow): number {
    const payloads = this.#deps.payloads();
    const output = key === null ? null : this.#read({ key, from: 0, to: payloads.size(key) });
    const said = this.#deps.model.costOf(output, {}) ?? this.#said.get(id, 0);
    if (said !== undefined) return said;
    const given = this.#read({ key: input, from: inputFrom, to: inputTo }) as ModelInput | undefined;
    if (!given) return this.#deps.model.maxPrice;
    const { tokens } = this.#deps.model;
    if (given["openai_route"] === undefined || !tokens) return this.#deps.model.reserve(given);
    const call = given["openai_input"];
    if (!isObject(call) || (isObject(output) && "error" in output)) return 0;
    const { chat } = readChat(call);
    return chat ? reserveChat(chat, inputTo - inputFrom, tokens) : this.#deps.model.maxPrice;
  }

  #read(range: PayloadRange): unknown {
    if (range.to - range.from > mostRead) return undefined;
    return tryParseJson(concat([...this.#deps.payloads().read(range)]));
  }

  /** The sum only grows: what was not heard is made good by the next word, or when the queue wakes. */
  #tell(): void {
    const spent = this.#spent;
    if (spent === 0) return;
    const { account, endpoint } = readQueueName(this.#deps.ctx.id.name);
    this.#deps.ctx.waitUntil(
      repeated(() => accountOf(this.#deps.env, account).recordSpent(endpoint, spent)).catch(logUntold),
    );
  }
}

function eventsIn(text: string): unknown[] {
  return text.split("\n").map((line) => tryParseJson(new TextEncoder().encode(line.replace(/^data: */, ""))));
}

function logUntold(error: unknown): void {
  console.warn(JSON.stringify({ credits: "not debited yet", error: nameOfFault(error) }));
}
