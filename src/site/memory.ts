// What this browser keeps for the page. It may refuse, or be full: then the page forgets.

type Place = "localStorage" | "sessionStorage";

export function recall<T>(place: Place, name: string): T | undefined {
  try {
    return JSON.parse(globalThis[place].getItem(name) ?? "") as T;
  } catch {
    return undefined;
  }
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
