// What went wrong, in plain words, where it went wrong; and what to do.
import { useLayoutEffect, useState } from "hono/jsx/dom";
import { hear } from "./controls.tsx";
import { changeToken, ownUser } from "./session.ts";
import type { Trouble } from "./words.ts";

interface Props {
  readonly trouble: Trouble;
  readonly again?: () => void;
}

export function TroubleBox({ trouble, again }: Props) {
  const { title, sentence, advice, wantsToken, requestId, againAt = 0 } = trouble;
  const [now, setNow] = useState(Date.now());
  const waits = Math.ceil((againAt - now) / 1000);
  useLayoutEffect(() => {
    const clock = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(clock);
  }, []);
  return (
    <div class="trouble card">
      <div role="alert">
        <h2>{title}</h2>
        <p>{sentence}</p>
        <p>{advice}</p>
      </div>
      {wantsToken && <TokenForm />}
      {!wantsToken && again && (
        <button type="button" onClick={again} disabled={waits > 0}>
          {waits > 0 ? `Try again in ${waits} s` : "Try again"}
        </button>
      )}
      {requestId && <p class="hint">Request {requestId}</p>}
    </div>
  );
}

/** Where visitors are off, and where a token has ended. */
export function TokenForm() {
  const [token, setToken] = useState("");
  const use = (event: Event) => {
    event.preventDefault();
    changeToken(token.trim());
  };
  return (
    <form class="field" onSubmit={use}>
      <p>
        Your app's backend mints tokens by <code>POST /tokens</code>; whoever deployed this gateway has one that{" "}
        <code>npm run deploy</code> printed. <a href="/docs/clients#which-token">The docs say how.</a>
      </p>
      <label for="token">Token</label>
      <input
        id="token"
        type="password"
        autocomplete="off"
        required
        pattern="\s*[\w.~\-]+\s*"
        title="A token has letters, digits, dots, - and _."
        onInput={hear(setToken)}
      />
      <div class="buttons">
        <button type="submit">Use this token</button>
        {ownUser !== undefined && (
          <button type="button" class="quiet" onClick={() => changeToken(undefined)}>
            Go on as a visitor
          </button>
        )}
      </div>
    </form>
  );
}
