// Controls that several pages have, and the hook by which a page asks what it shows.
import { useId, useLayoutEffect, useState } from "hono/jsx/dom";
import { type Trouble, troubleOf } from "./words.ts";

type Option = readonly [value: string, name: string];

interface Chooser {
  readonly options: readonly Option[];
  readonly chosen: string;
  readonly choose: (value: string) => void;
}

/** Hears what is typed or chosen. */
export const hear =
  (tell: (value: string) => void) =>
  ({ target }: Event) =>
    tell((target as HTMLInputElement).value);

/** One of a few, all of them in sight. */
export function Choices({ label, options, chosen, choose }: Chooser & { readonly label: string }) {
  const group = useId();
  return (
    <fieldset class="choices">
      <legend class="unseen">{label}</legend>
      {options.map(([value, name]) => (
        <label>
          <input class="unseen" type="radio" name={group} checked={value === chosen} onChange={() => choose(value)} />
          {name}
        </label>
      ))}
    </fieldset>
  );
}

/** One of many. Further attributes are the element's own. */
export function Select({ options, chosen, choose, ...own }: Chooser & Readonly<Record<string, unknown>>) {
  return (
    <select {...own} value={chosen} onChange={hear(choose)}>
      {options.map(([value, name]) => (
        <option value={value} selected={value === chosen}>
          {name}
        </option>
      ))}
    </select>
  );
}

/** What the gateway answers when the page opens, or its refusal; and how to ask again. */
export function useAnswer<T>(ask: () => Promise<T>) {
  const [answer, setAnswer] = useState<T>();
  const [trouble, setTrouble] = useState<Trouble>();
  const again = () => {
    setTrouble(undefined);
    ask().then(setAnswer, (error) => setTrouble(troubleOf(error)));
  };
  useLayoutEffect(again, []);
  return { answer, trouble, again };
}
