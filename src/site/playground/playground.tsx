// The page at `/`: a model, its form, what it makes, and the code for the same call.
import { useLayoutEffect, useMemo, useRef, useState } from "hono/jsx/dom";
import type { ListedModel, Usage } from "../../client/index.ts";
import type { MediaKind } from "../media.tsx";
import { sluice, tokensUser } from "../session.ts";
import { Code } from "../tabs.tsx";
import { openPage } from "../trouble.tsx";
import { snippetsOf } from "./code.ts";
import { Fields, Switch } from "./fields.tsx";
import { beginning, type FormState, keepForm, keepRecipe, valuesOf, withFile, withValue } from "./form-state.ts";
import { ModelPicker, modelOfKind, RivalPicker } from "./pickers.tsx";
import { madeUrl, Result } from "./result.tsx";
import { leftToday, noRoomFor, priceOf } from "./room.ts";
import { type Field, fieldsOf, inputOf } from "./schema.ts";
import { isUnderWay, type Side, useEstimates, useRun } from "./use-run.ts";

type Catalog = Readonly<{ models: readonly ListedModel[]; samples?: boolean }>;

function Playground({ models, samples, first }: Catalog & { readonly first: Usage }) {
  const forms = useMemo(() => new Map(models.map(({ id, input }) => [`${id}`, fieldsOf(input)])), []);
  const [state, setState] = useState(() => ofAskedKind(beginning(forms), models));
  const [usage, setUsage] = useState(first);
  const left = useRun("sluice job");
  const right = useRun("sluice other job");
  const form = useRef<HTMLFormElement>(null);
  const modelOf = (id: string | undefined) => models.find((model) => model.id === id);
  const model = modelOf(state.model) ?? (models[0] as ListedModel);
  const rival = models.find(({ id, kind }) => id === state.rival && kind === model.kind);
  const fields = forms.get(model.id) ?? [];
  const values = valuesOf(state, model.id, fields);
  const callOf = ({ id }: ListedModel, from: FormState) => {
    const own = forms.get(id) ?? [];
    return [id, inputOf(own, valuesOf(from, id, own))] as const;
  };
  const [, input] = callOf(model, state);
  const calls = (rival ? [model, rival] : [model]).map((one) => callOf(one, state));
  const estimates = useEstimates(calls, form);
  const noRoom = typeof estimates === "string" ? "" : noRoomFor(estimates, usage, model);
  const goesOn = isUnderWay(left.run) || isUnderWay(right.run);
  useLayoutEffect(() => keepForm(state), [state]);
  // Pictures are what the page without a kind begins with.
  const address = model.kind === "image" ? location.pathname : `?kind=${model.kind}`;
  useLayoutEffect(() => history.replaceState(null, "", address), [address]);

  /** What arrives late, such as a file, changes the form as it is by then. */
  const change = (name: string, value: unknown) => setState((now) => withValue(now, model.id, name, value));
  const choose = (id: string) => setState({ ...state, model: id, lastOf: { ...state.lastOf, [model.kind]: model.id } });
  const start = async (side: Side, which: ListedModel, seeded: FormState) => {
    const made = await side.start(...callOf(which, seeded));
    const url = madeUrl(made, which);
    if (url !== undefined) keepRecipe({ url, model: which.id, input: made.input });
    sluice.usage().then(setUsage, () => {});
  };
  /** A seed of its own for each run, unless it is kept: so that each result can be had again. */
  const run = (event?: Event) => {
    event?.preventDefault();
    if (goesOn || !form.current?.reportValidity()) return;
    const isKept = state.keepsSeed && Number(state.shared["seed"] ?? -1) >= 0;
    const seed = isKept ? state.shared["seed"] : Math.floor(Math.random() * 2 ** 31);
    const seeded = { ...state, keepsSeed: isKept, shared: { ...state.shared, seed } };
    setState(seeded);
    void start(left, model, seeded);
    if (rival) void start(right, rival, seeded);
  };
  const takes = (kind: MediaKind) => (field: Field) => field.schema["x-media"] === kind && field.rank === "first";
  const takersOf = (kind: MediaKind) => models.filter(({ id }) => forms.get(id)?.some(takes(kind)));
  const use = (id: string, kind: MediaKind, url: string) => {
    const { name = "" } = forms.get(id)?.find(takes(kind)) ?? {};
    setState(withFile(state, id, name, url));
    document.getElementById("model")?.focus();
  };
  const given = { values, change, fault: left.run.trouble };
  const [shown, more] = [fields.filter(({ rank }) => rank !== "more"), fields.filter(({ rank }) => rank === "more")];
  const turnSeed = (keepsSeed: boolean) => setState({ ...state, keepsSeed });
  const enter = (event: KeyboardEvent) => (event.ctrlKey || event.metaKey) && event.key === "Enter" && run();
  const sides = [{ ...left, model: modelOf(left.run.model) ?? model }];
  if (rival) sides.push({ ...right, model: modelOf(right.run.model) ?? rival });

  return (
    <div class="playground">
      <form ref={form} class="panel" aria-label="Input" onSubmit={run} onKeyDown={enter} onInvalidCapture={openAround}>
        <ModelPicker {...{ models, model, choose }} lastOf={state.lastOf} />
        <div class="fields" key={model.id}>
          <Fields {...given} fields={shown} />
          {"seed" in values && <Switch label="Keep the seed" isOn={state.keepsSeed} turn={turnSeed} />}
        </div>
        {more.length > 0 && (
          <details key={`${model.id} more`}>
            <summary>More options</summary>
            <div class="fields">
              <Fields {...given} fields={more} />
            </div>
          </details>
        )}
        <RivalPicker {...{ models, model, rival }} choose={(id) => setState({ ...state, rival: id || undefined })} />
        <div class="go">
          <button type="submit" aria-disabled={`${goesOn}`}>
            <span key={`${goesOn}`}>{goesOn ? "Running …" : "Run"}</span>
          </button>
          <p class="hint" aria-live="polite">
            {typeof estimates === "string" ? estimates : priceOf(estimates)}
            {noRoom && <span class="fault">. {noRoom}</span>}
          </p>
        </div>
        <p class="hint">
          {leftToday(usage, model)} {tokensUser}
        </p>
        {samples && (
          <p class="hint">No model service is connected here: results are samples, unless a worker is attached.</p>
        )}
      </form>
      <div class="results">
        {sides.map((side) => (
          <Result {...side} again={run} takersOf={takersOf} use={use} />
        ))}
      </div>
      <section class="snippets" aria-label="Code for this call">
        <h2>The same call as code</h2>
        <div class="code">
          <Code snippets={snippetsOf(model, input, location.origin)} />
        </div>
      </section>
    </div>
  );
}

function ofAskedKind(state: FormState, models: Catalog["models"]): FormState {
  const kind = new URLSearchParams(location.search).get("kind");
  const isOfKind = models.some((model) => model.id === state.model && model.kind === kind);
  const asked = isOfKind ? undefined : modelOfKind(models, kind, state.lastOf);
  return asked ? { ...state, model: asked.id } : state;
}

/** A browser shows no fault of a field that stands in a closed part, and runs nothing either. */
function openAround({ target }: Event): void {
  const part = (target as HTMLElement).closest("details");
  if (part) part.open = true;
}

openPage(
  async () => {
    const [answer, first] = await Promise.all([sluice.call("/models"), sluice.usage()]);
    return { ...((await answer.json()) as Catalog), first };
  },
  (props) => <Playground {...props} />,
);
