// What this browser keeps for the page. It may refuse, or be full: then the page forgets.

type Place = "localStorage" | "sessionStorage";

/** What was kept; `usual` where nothing was, or what somebody spoiled. */
export function recall<T>(place: Place, name: string, usual: T): T {
  try {
    return shaped(JSON.parse(globalThis[place].getItem(name) ?? ""), usual);
  } catch {
    return usual;
  }
}

const kindOf = (value: unknown) => (value === null ? "null" : Array.isArray(value) ? "list" : typeof value);

/** The value, with what it lacks of `usual`; `usual` itself where any of its members is of another kind. */
export function shaped<T>(value: unknown, usual: T): T {
  if (!fits(value, usual)) return usual;
  return kindOf(usual) === "object" ? { ...usual, ...(value as T) } : (value as T);
}

function fits(value: unknown, usual: unknown): boolean {
  if (kindOf(value) !== kindOf(usual)) return false;
  const given = value as Readonly<Record<string, unknown>>;
  const members = kindOf(usual) === "object" ? Object.entries(usual as object) : [];
  return members.every(([name, member]) => given[name] === undefined || fits(given[name], member));
}

/** Nothing is kept of `undefined`. */
export function keep(place: Place, name: string, value: unknown): void {
  try {
    if (value === undefined) globalThis[place].removeItem(name);
    else globalThis[place].setItem(name, JSON.stringify(value));
  } catch {
    // The page goes on without.
  }
}
