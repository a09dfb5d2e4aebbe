// One run of a model, from the button to the result, and what it would cost at most. A page that is loaded anew takes its
// job up again, and shows its result for as long as the gateway keeps it.
import { type RefObject, useLayoutEffect, useRef, useState } from "hono/jsx/dom";
import type { Estimate, Job, SluiceError } from "../../client/index.ts";
import { keep, recall } from "../memory.ts";
import { contacts, sluice } from "../session.ts";
import { type Trouble, troubleOf, usd } from "../words.ts";

type Input = Readonly<Record<string, unknown>>;
type Call = readonly [model: string, input: Input];

export interface Run {
  /** `idle`, `noted` where an earlier page began it, or as the client tells it. */
  readonly state: string;
  readonly model: string;
  readonly input: Input;
  /** What a text model has written so far. */
  readonly text: string;
  readonly job?: Job | undefined;
  readonly trouble?: Trouble;
  /** The gateway does not answer now. */
  readonly isLost?: boolean;
  /** What came of the wish to cancel it. */
  readonly says?: string | undefined;
}

export type Side = ReturnType<typeof useRun>;

const pauseMs = 250;
const cancelWithinMs = 10_000;
const idle: Run = { state: "idle", model: "", input: {}, text: "" };

export const isUnderWay = ({ state, job, trouble }: Run) => state !== "idle" && !job && !trouble;

/** `place` is where its job is noted until the next one begins. */
export function useRun(place: string) {
  const [run, setRun] = useState(idle);
  const cancel = useRef<() => void>(null);

  const follow = async (begun: Run, submit: () => Promise<string>) => {
    let now = begun;
    const tell = (news: Partial<Run>) => {
      now = { ...now, ...news };
      setRun(now);
    };
    tell({});
    const hear = (isLost: boolean) => isLost === Boolean(now.isLost) || tell({ isLost });
    contacts.add(hear);
    let id = "";
    let isCancelling = false;
    const failCancel = (error: unknown) => {
      const says = `Not cancelled: ${troubleOf(error).sentence} The job may go on, and cost.`;
      if (isUnderWay(now)) tell({ says });
    };
    cancel.current = () => {
      isCancelling = true;
      tell({ says: "Cancelling …" });
      if (id) void cancelJob(begun.model, id).catch(failCancel);
    };
    try {
      id = await submit();
      // Without its id it could not be cancelled.
      if (isCancelling) cancel.current();
      const onState = (state: string) => tell({ state });
      const onChunk = (chunk: unknown) => tell({ text: now.text + textOf(chunk) });
      const job = await sluice.follow(begun.model, id, { onState, onChunk });
      tell({ job, text: textOf(job.output) || now.text, says: undefined });
    } catch (error) {
      const { code, status, job } = error as SluiceError;
      const isGone = status === 404;
      if (isCancelling && code === "JOB_CANCELLED") tell({ state: "idle", says: await cancelled(begun.model) });
      else if (isGone && now.state === "noted") tell({ state: "idle" });
      else tell({ trouble: troubleOf(error), says: undefined });
      if (isGone || job) keep("sessionStorage", place, undefined);
    }
    contacts.delete(hear);
    return now;
  };

  const start = (model: string, input: Input) => {
    keep("sessionStorage", place, undefined);
    return follow({ ...idle, state: "submitting", model, input }, async () => {
      const { id } = await sluice.submit(model, input);
      keep("sessionStorage", place, { model, input, id });
      return id;
    });
  };

  useLayoutEffect(() => {
    const { model, input, id } = recall("sessionStorage", place, { model: "", input: {} as Input, id: "" });
    if (model && id) void follow({ ...idle, state: "noted", model, input }, async () => id);
  }, []);

  return { run, start, cancel: () => cancel.current?.() };
}

/** Sent once, unlike the client's own: the visitor hears soon that it reached nobody. */
const cancelJob = (model: string, id: string) =>
  sluice.call(`/v2/${model}/cancel/${id}`, { method: "POST", signal: AbortSignal.timeout(cancelWithinMs) });

/** Of the newest job of the model that was cancelled; the answer about a cancelled job tells no cost. */
async function cancelled(model: string): Promise<string> {
  const { jobs = [] } = (await sluice.usage().catch(() => undefined)) ?? {};
  const { costUsd = null } = jobs.find((job) => job.model === model && job.status === "CANCELLED") ?? {};
  return costUsd === null ? "Cancelled." : `Cancelled. It cost ${costUsd === 0 ? "nothing" : usd(costUsd)}.`;
}

/** Text in whatever shape a text model sends it: pieces, tokens of choices, or messages. */
function textOf(output: unknown): string {
  if (typeof output === "string") return output;
  if (Array.isArray(output)) return output.map(textOf).join("");
  if (typeof output !== "object" || output === null) return "";
  const { text, tokens, choices, message, delta, content } = output as Record<string, unknown>;
  return textOf(text ?? tokens ?? choices ?? message ?? delta ?? content);
}

/** One for each call, asked of the gateway while the form changes; or why there is none. Empty while it is not known. */
export function useEstimates(calls: readonly Call[], form: RefObject<HTMLFormElement | null>) {
  const [estimates, tell] = useState<readonly Estimate[] | string>("");
  useLayoutEffect(() => {
    const left = new AbortController();
    tell("");
    const timer = setTimeout(async () => {
      const wrong = form.current?.querySelector<HTMLInputElement>(":is(input, textarea, select):invalid");
      if (wrong) return tell(whatIsWrong(wrong));
      const asked = calls.map(([model, input]) => sluice.estimate(model, input, { signal: left.signal }));
      const told = await Promise.all(asked).catch((error) => troubleOf(error).sentence);
      if (!left.signal.aborted) tell(told);
    }, pauseMs);
    return () => {
      clearTimeout(timer);
      left.abort();
    };
  }, [JSON.stringify(calls)]);
  return estimates;
}

function whatIsWrong({ validity, validationMessage, labels, ariaLabel }: HTMLInputElement): string {
  if (validity.valueMissing) return "Fill in what is needed to see the price.";
  return `${labels?.[0]?.textContent || ariaLabel}: ${validationMessage}`;
}
