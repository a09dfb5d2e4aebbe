// What a run came to: the picture, film, sound or text, what it cost, and what can be done with it next.
import { useLayoutEffect, useRef, useState } from "hono/jsx/dom";
import { type ListedModel, SluiceError } from "../../client/index.ts";
import { Quiet, Select, useFocusAfter } from "../controls.tsx";
import { Download, kindOf, linkOf, Media, type MediaKind } from "../media.tsx";
import { CopyButton } from "../tabs.tsx";
import { TroubleBox } from "../trouble.tsx";
import { fromNow, seconds, troubleOf, usd } from "../words.ts";
import { isUnderWay, type Run, type Side } from "./use-run.ts";

interface Props extends Side {
  readonly model: ListedModel;
  readonly again: () => void;
  /** The models that take what this one made. */
  readonly takersOf: (kind: MediaKind) => readonly ListedModel[];
  readonly use: (model: string, kind: MediaKind, url: string) => void;
}

const doing: Record<string, string> = {
  noted: "Loading …",
  submitting: "Asking …",
  IN_QUEUE: "Waiting for a worker …",
};
const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth";
const fileGone = troubleOf(new SluiceError("FILE_GONE", "There is no connection, or the link has ended."));

export function Result(props: Props) {
  const { run, model, cancel, again } = props;
  const { job, trouble, text } = run;
  const goesOn = isUnderWay(run);
  const state = trouble ? "TROUBLE" : job ? "COMPLETED" : run.state;
  const working = run.isLost ? "No connection. Still trying …" : (doing[run.state] ?? "Making it …");
  const says = run.says ?? (goesOn ? working : job && "Done.");
  const place = useRef<HTMLElement>(null);
  useFocusAfter(place, () => place.current?.focus());
  useLayoutEffect(() => {
    // Of two that begin, the first.
    const begins = state === "submitting" && place.current?.matches(":first-child");
    if (begins || trouble) place.current?.scrollIntoView({ block: "nearest", behavior });
  }, [state]);
  return (
    <section
      ref={place}
      tabindex={-1}
      class="result card"
      data-model={run.model}
      data-state={state}
      aria-label={model.title}
    >
      <h2 class="name">{model.title}</h2>
      <div class="stage">
        {trouble && <TroubleBox trouble={trouble} again={again} />}
        {text && (
          <div class="text" dir="auto">
            {text}
          </div>
        )}
        <p role="status" class={goesOn || run.says ? "" : "unseen"}>
          {says}
        </p>
        {goesOn && !text && <progress aria-label={says} />}
        {state === "idle" && !text && !run.says && <p class="empty">{model.title} answers here.</p>}
        {job && !text && <Made run={run} model={model} />}
      </div>
      {goesOn && <Quiet says="Cancel" act={cancel} />}
      {job && <Actions {...props} />}
    </section>
  );
}

export function madeUrl({ job }: Run, { output }: ListedModel): string | undefined {
  return linkOf((job?.output as Record<string, unknown> | undefined)?.[output]);
}

function Made({ run, model }: { readonly run: Run; readonly model: ListedModel }) {
  const url = madeUrl(run, model);
  const [isGone, setIsGone] = useState(false);
  if (url === undefined) return <div class="text">{JSON.stringify(run.job?.output, null, 2)}</div>;
  if (isGone) return <TroubleBox trouble={fileGone} again={() => setIsGone(false)} />;
  const says = `${run.input["prompt"] ?? model.title}`;
  return (
    <div class="made" onErrorCapture={() => setIsGone(true)}>
      <Media kind={kindOf(model.output)} url={url} says={says} />
    </div>
  );
}

function Actions({ run, model, takersOf, use }: Props) {
  const url = madeUrl(run, model);
  const kind = kindOf(model.output);
  const takers = [["", "Use as input of …"], ...takersOf(kind).map(({ id, title }) => [id, title] as const)] as const;
  return (
    <div class="bar">
      <p class="hint">{factsOf(run)}</p>
      <div class="buttons">
        {run.text && <CopyButton text={run.text} />}
        {url && <Download url={url} />}
        {url && takers.length > 1 && (
          <Select aria-label="Use as input of" options={takers} chosen="" choose={(id) => use(id, kind, url)} />
        )}
      </div>
    </div>
  );
}

function factsOf({ job, input }: Run): string {
  const { cost, executionTime, output } = job ?? {};
  const ends = (output as { expires_at?: string } | undefined)?.expires_at;
  const price = cost !== undefined && (cost === 0 ? "Free" : usd(cost));
  const time = executionTime !== undefined && seconds(executionTime);
  const seed = input["seed"] !== undefined && `seed ${input["seed"]}`;
  return [price, time, seed, ends && `link ends ${fromNow(ends)}`].filter(Boolean).join(" · ");
}
