// What went wrong, in plain words, where it went wrong; and what to do.
import type { Child } from "hono/jsx";
import { render, useLayoutEffect, useState } from "hono/jsx/dom";
import { Quiet } from "./controls.tsx";
import { changeToken, tokensUser } from "./session.ts";
import { type Trouble, troubleOf } from "./words.ts";

/** Shows what the gateway answers. Whoever may not ask is told so at once, and asked for a token. */
export function openPage<T>(ask: () => Promise<T>, view: (answer: T) => Child): void {
  const Page = () => {
    const [shown, show] = useState<Child>(<p class="empty">Looking it up …</p>);
    const refuse = (error: unknown) => show(<TroubleBox trouble={troubleOf(error)} again={begin} />);
    const begin = () => void ask().then(view).then(show, refuse);
    useLayoutEffect(begin, []);
    return <>{shown}</>;
  };
  render(<Page />, document.getElementById("app") as HTMLElement);
}

export function TroubleBox({ trouble, again }: { readonly trouble: Trouble; readonly again: () => void }) {
  const { title, sentence, advice, wantsToken, isFinal, requestId, againAt = 0 } = trouble;
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
      {!wantsToken && !isFinal && (
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
  const use = (event: Event) => {
    event.preventDefault();
    changeToken(`${new FormData(event.target as HTMLFormElement).get("token")}`.trim());
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
        name="token"
        type="password"
        autocomplete="off"
        required
        pattern="\s*[\w.~\-]+\s*"
        title="A token has letters, digits, dots, - and _."
      />
      <div class="buttons">
        <button type="submit">Use this token</button>
        {tokensUser && <Quiet says="Go on as a visitor" act={() => changeToken(undefined)} />}
      </div>
    </form>
  );
}
