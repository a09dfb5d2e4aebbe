// Controls that several pages have.
import { type RefObject, useId, useLayoutEffect } from "hono/jsx/dom";

type Option = readonly [value: string, name: string];

type Chooser = Readonly<{ options: readonly Option[]; chosen: string; choose: (value: string) => void }>;

/** Hears what is typed or chosen. */
export const hear =
  (tell: (value: string) => void) =>
  ({ target }: Event) =>
    tell((target as HTMLInputElement).value);

/** A button beside the one that a page is about. The label is for those who do not see what it stands beside. */
export function Quiet({ says, act, label }: Readonly<{ says: string; act: () => void; label?: string }>) {
  return (
    <button type="button" class="quiet" aria-label={label} aria-live="polite" onClick={act}>
      {says}
    </button>
  );
}

/** One of a few, all of them in sight. */
export function Choices({ label, options, chosen, choose }: Chooser & Readonly<{ label: string }>) {
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

/** An element that goes takes the focus with it. `move` is told which child of `place` had it, and puts it where one goes on. */
export function useFocusAfter(place: RefObject<HTMLElement | null>, move: (child: number) => void): void {
  const focused = [...(place.current?.children ?? [])].findIndex((child) => child.contains(document.activeElement));
  useLayoutEffect(() => {
    if (focused >= 0 && document.activeElement === document.body) move(focused);
  });
}
