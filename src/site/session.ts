// Who this tab speaks for: a token that its address brought or a person pasted, else a visitor that anybody may be.
// The bearer lies in sessionStorage: it ends with the tab, and no cookie carries it anywhere.
import { createSluice, type Fetch, type Store } from "../client/index.ts";
import { keep, recall } from "./memory.ts";
import { passChallenge, siteKey } from "./turnstile.ts";

const tokenPlace = "sluice token";
/** Where the client keeps a visitor's session. */
const visitorPlace = "sluice ";
/** Until when some tab may have it, for all tabs to read. Of the bearer nothing lies there. */
const knownUntilPlace = "sluice visitor until";
/** A tab that is busy answers late. Without a known visitor there is hardly one to wait for. */
const answersWithinMs = { known: 2000, unknown: 60 } as const;

/** Of a session's beginning, once the visitor has passed the challenge. */
const sessionWithinMs = 60_000;

const noSession = { token: "", expiresAt: "" };
const visitors: Store = {
  getItem: (name) => JSON.stringify(recall("sessionStorage", name, noSession)),
  setItem: (name, text) => {
    const session = JSON.parse(text) as typeof noSession;
    keep("sessionStorage", name, session);
    keep("localStorage", knownUntilPlace, Date.parse(session.expiresAt));
  },
};

/** Empty for a visitor. */
const ownToken = findToken();
if (ownToken === "") await askOtherTabs();
/** Told after each call whether the connection is lost. */
export const contacts = new Set<(isLost: boolean) => void>();
const caller = ownToken ? { token: ownToken } : { storage: visitors };
export const sluice = createSluice({ ...caller, fetch: watchedFetch });
/** Whom a token names; empty for a visitor. */
export const tokensUser = ownToken && `With the token of ${userOf(ownToken)}.`;

// The printed address may be opened in a tab that shows the page already.
addEventListener("hashchange", () => location.hash.startsWith("#token=") && location.reload());
// A page that the browser kept may have been left as somebody else.
addEventListener("pageshow", ({ persisted }) => {
  if (persisted && recall("sessionStorage", tokenPlace, "") !== ownToken) location.reload();
});

/** `#token=…`, as `npm run deploy` prints it, gone from the address before anything else is done; else the one kept. */
function findToken(): string {
  const given = /^#token=(.*)/.exec(location.hash)?.[1];
  if (given !== undefined) history.replaceState(null, "", location.pathname + location.search);
  const found = [given ?? "", recall("sessionStorage", tokenPlace, "")];
  const token = found.find((one) => /^[\w.~-]+$/.test(one)) ?? "";
  keep("sessionStorage", tokenPlace, token || undefined);
  return token;
}

/** What answers with an error's page is not the gateway. */
async function watchedFetch(...[url, init]: Parameters<Fetch>): Promise<Response> {
  try {
    const answer = await (siteKey === undefined ? fetch(url, init) : withChallenge(url, init));
    const isLost = !answer.ok && !answer.headers.get("Content-Type")?.includes("json");
    for (const hear of contacts) hear(isLost);
    return answer;
  } catch (error) {
    if (!init.signal?.aborted) for (const hear of contacts) hear(true);
    throw error;
  }
}

/**
 * The time that the client allows for an answer runs while the visitor solves the challenge: the request gets its own. A failed
 * challenge is told as the gateway would tell it, since the client would repeat what seems to be a lost connection.
 */
async function withChallenge(...[url, init]: Parameters<Fetch>): Promise<Response> {
  if (url !== "/sessions") return fetch(url, init);
  let passed: string;
  try {
    passed = await passChallenge();
  } catch (error) {
    return Response.json({ code: "TURNSTILE_FAILED", detail: (error as Error).message }, { status: 403 });
  }
  const headers = { ...init.headers, "Content-Type": "application/json" };
  const body = JSON.stringify({ turnstile: passed });
  return fetch(url, { ...init, headers, body, signal: AbortSignal.timeout(sessionWithinMs) });
}

/** The page begins anew with it, by its own address, which works where nothing is kept. What was typed is remembered. */
export function changeToken(token: string | undefined): void {
  keep("sessionStorage", tokenPlace, undefined);
  history.replaceState(null, "", token === undefined ? location.pathname : `#token=${token}`);
  location.reload();
}

/** For people to see. The gateway alone can tell whether it is true. */
function userOf(token: string): string {
  try {
    const { sub } = JSON.parse(atob((token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/")));
    return `${sub}`;
  } catch {
    return "somebody";
  }
}

/** A visitor is the same in all tabs, though each keeps the bearer for itself: a new tab asks the others for it. */
async function askOtherTabs(): Promise<void> {
  const own = () => recall("sessionStorage", visitorPlace, noSession);
  const channel = new BroadcastChannel("sluice visitor");
  const told = new Promise<unknown>((resolve) => {
    channel.onmessage = ({ data }) => {
      if (data.asks) channel.postMessage({ session: own() });
      else if (data.session?.token) resolve(data.session);
    };
    const isKnown = recall("localStorage", knownUntilPlace, 0) > Date.now();
    setTimeout(resolve, isKnown ? answersWithinMs.known : answersWithinMs.unknown);
  });
  if (own().token) return;
  channel.postMessage({ asks: true });
  keep("sessionStorage", visitorPlace, await told);
}
