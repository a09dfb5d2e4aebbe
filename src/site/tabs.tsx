// Code in several languages, one of which is shown: the same for the whole page, and for the next.
import { useLayoutEffect, useState } from "hono/jsx/dom";
import { Choices } from "./controls.tsx";
import { keep, recall } from "./memory.ts";

export interface Snippet {
  readonly name: string;
  readonly code: string;
}

const place = "sluice language";
const page = new EventTarget();

function choose(name: string): void {
  keep("localStorage", place, name);
  page.dispatchEvent(new CustomEvent("language", { detail: name }));
}

/** The inside of what is styled as `code`. */
export function Code({ snippets }: { readonly snippets: readonly Snippet[] }) {
  const [chosen, setChosen] = useState(recall<string>("localStorage", place));
  useLayoutEffect(() => {
    const follow = ({ detail }: CustomEventInit<string>) => setChosen(detail);
    page.addEventListener("language", follow);
    return () => page.removeEventListener("language", follow);
  }, []);
  const { name, code } = snippets.find((snippet) => snippet.name === chosen) ?? (snippets[0] as Snippet);
  const options = snippets.map((snippet) => [snippet.name, snippet.name] as const);
  return (
    <>
      {snippets.length > 1 && <Choices label="Language" options={options} chosen={name} choose={choose} />}
      <pre tabindex={0}>
        <code>{code}</code>
      </pre>
      <CopyButton text={code} />
    </>
  );
}

export function CopyButton({ text }: { readonly text: string }) {
  const [says, say] = useState("Copy");
  const copy = async () => {
    const copied = navigator.clipboard.writeText(text).then(() => "Copied");
    say(await copied.catch(() => "Select and copy it"));
    setTimeout(() => say("Copy"), 2000);
  };
  return (
    <button type="button" class="quiet copy" onClick={copy} aria-live="polite">
      {says}
    </button>
  );
}
