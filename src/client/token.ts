// The caller's token: asked for when it is needed, anew before it ends, and once for however many wait for it.

/** A token, or what `POST /sessions` and `POST /tokens` answer. */
export type Token = string | { readonly token: string; readonly expiresAt?: string };
export type TokenSource = string | (() => Token | Promise<Token>);

export interface Tokens {
  current(): Promise<string>;
  /** Another one than this, which the gateway refused; the same where there is no other. */
  renewed(refused: string): Promise<string>;
}

/** A token is renewed in the last quarter of its time, and at most so long before its end. */
const marginMs = 60_000;

export function keepToken(source: TokenSource): Tokens {
  if (typeof source === "string") return { current: async () => source, renewed: async () => source };
  let held: string | undefined;
  let asked: Promise<string> | undefined;
  let renewAt = 0;
  const ask = () => {
    // Whoever is refused the old one meanwhile waits for this one.
    held = undefined;
    const asking = (async () => {
      const given = await source();
      const { token, expiresAt }: Exclude<Token, string> = typeof given === "string" ? { token: given } : given;
      const leftMs = (expiresAt === undefined ? endOf(token) : Date.parse(expiresAt)) - Date.now();
      // Where this machine's clock is ahead, a fresh token seems to have ended: the gateway tells when it has.
      renewAt = leftMs > 0 ? Date.now() + leftMs - Math.min(marginMs, leftMs / 4) : Number.POSITIVE_INFINITY;
      held = token;
      return token;
    })();
    renewAt = Number.POSITIVE_INFINITY;
    asked = asking;
    asking.catch(() => {
      if (asked === asking) asked = undefined;
    });
    return asking;
  };
  return {
    current: () => (asked && Date.now() < renewAt ? asked : ask()),
    renewed: async (refused) => {
      return held === refused ? ask() : (asked ?? ask());
    },
  };
}

/** When a JSON Web Token ends, in milliseconds; not a number where it does not say. */
function endOf(token: string): number {
  try {
    const claims = token.split(".")[1] ?? "";
    return JSON.parse(atob(claims.replaceAll("-", "+").replaceAll("_", "/"))).exp * 1000;
  } catch {
    return Number.NaN;
  }
}
