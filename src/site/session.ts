// Who this tab speaks for: a token that its address brought or a person pasted, else a visitor that anybody may be.
// The bearer lies in sessionStorage: it ends with the tab, and no cookie carries it anywhere.
import { createSluice, type Fetch, type Sluice, type Store } from "../client/index.ts";
import { keep, recall } from "./memory.ts";
import { passChallenge, siteKey } from "./turnstile.ts";

const tokenPlace = "sluice token";
/** Where the client keeps a visitor's session. */
const visitorPlace = "sluice ";
/** Until when some tab may have it, for all tabs to read. Of the bearer nothing lies there. */
const knownUntilPlace = "sluice visitor until";
/** A tab that is busy answers late. Without a known visitor there is hardly one to wait for. */
const answersWithinMs = { known: 2000, unknown: 60 } as const;

const visitors: Store = {
  getItem: (name) => JSON.stringify(recall("sessionStorage", name) ?? null),
  setItem: (name, text) => {
    const session = JSON.parse(text) as { readonly expiresAt: string };
    keep("sessionStorage", name, session);
    keep("localStorage", knownUntilPlace, Date.parse(session.expiresAt));
  },
};

const ownToken = takeFromAddress() ?? recall<string>("sessionStorage", tokenPlace);
if (ownToken === undefined) await askOtherTabs();
export const sluice = open();
/** The user whom the token names; undefined for a visitor. */
export const ownUser = ownToken === undefined ? undefined : userOf(ownToken);

// The printed address may be opened in a tab that shows the page already.
addEventListener("hashchange", () => location.hash.startsWith("#token=") && location.reload());
// A page that the browser kept may have been left as somebody else.
addEventListener("pageshow", ({ persisted }) => {
  if (persisted && recall("sessionStorage", tokenPlace) !== ownToken) location.reload();
});

/** `#token=…`, as `npm run deploy` prints it: gone from the address before anything else is done. */
function takeFromAddress(): string | undefined {
  const [, token] = /^#token=([\w.~-]+)$/.exec(location.hash) ?? [];
  if (location.hash.startsWith("#token=")) history.replaceState(null, "", location.pathname + location.search);
  if (token !== undefined) keep("sessionStorage", tokenPlace, token);
  return token;
}

function open(): Sluice {
  if (ownToken !== undefined) return createSluice({ token: ownToken });
  return createSluice({ storage: visitors, ...(siteKey !== undefined && { fetch: withChallenge }) });
}

async function withChallenge(...[url, init]: Parameters<Fetch>): Promise<Response> {
  if (url !== "/sessions") return fetch(url, init);
  const body = JSON.stringify({ turnstile: await passChallenge() });
  return fetch(url, { ...init, headers: { ...init.headers, "Content-Type": "application/json" }, body });
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
  const channel = new BroadcastChannel("sluice visitor");
  const told = new Promise<unknown>((resolve) => {
    channel.onmessage = ({ data }) => {
      if (data.asks) channel.postMessage({ session: recall("sessionStorage", visitorPlace) });
      else if (data.session) resolve(data.session);
    };
    const isKnown = (recall<number>("localStorage", knownUntilPlace) ?? 0) > Date.now();
    setTimeout(resolve, isKnown ? answersWithinMs.known : answersWithinMs.unknown);
  });
  if (recall("sessionStorage", visitorPlace) !== undefined) return;
  channel.postMessage({ asks: true });
  keep("sessionStorage", visitorPlace, await told);
}
