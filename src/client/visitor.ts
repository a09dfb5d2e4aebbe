// Who brings no token is an anonymous visitor, with a session that is renewed for as long as they stay.
import { callerOf, type Fetch } from "./call.ts";
import { keepToken, type Token } from "./token.ts";

/** `localStorage`, or what does as well. */
export interface Store {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
}

type Session = Exclude<Token, string>;

/** A session that is still good is renewed: the visitor's jobs and pictures stay their own. */
export function visitorsToken(url: string, fetch: Fetch, storage?: Store) {
  const place = `sluice ${url}`;
  let session: Session | undefined;
  /** What another tab, or the page before, began or renewed. */
  const kept = (): Session | undefined => {
    // A browser may forbid its storage, and anything may lie there.
    try {
      const other = JSON.parse(storage?.getItem(place) as string);
      if (other.token !== session?.token && Date.parse(other.expiresAt) > Date.now()) return other;
    } catch {}
    return undefined;
  };
  const begin = async (): Promise<Session> => {
    const call = callerOf(url, keepToken(session?.token ?? ""), fetch);
    return (await call("/sessions", { method: "POST", isJson: true })).json();
  };
  return async (): Promise<Token> => {
    const begun = kept() ?? (await begin());
    // Tabs that were opened at once are one visitor, unless their answers come within the moment that a browser's storage takes.
    session = kept() ?? begun;
    try {
      storage?.setItem(place, JSON.stringify(session));
    } catch {}
    return session;
  };
}
