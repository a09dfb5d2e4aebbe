// Code in several languages, one of which is shown: the same for the whole page, and for the next.
import { useLayoutEffect, useState } from "hono/jsx/dom";
import { Choices, Quiet } from "./controls.tsx";
import { keep, recall } from "./memory.ts";

export type Snippet = Readonly<{ name: string; code: string }>;

const place = "sluice language";
/** Of all code on the page. */
const listeners = new Set<(name: string) => void>();

function choose(name: string): void {
  keep("localStorage", place, name);
  for (const tell of listeners) tell(name);
}

/** The inside of what is styled as `code`. */
export function Code({ snippets }: { readonly snippets: readonly Snippet[] }) {
  const [chosen, setChosen] = useState(recall("localStorage", place, ""));
  useLayoutEffect(() => {
    listeners.add(setChosen);
    return () => void listeners.delete(setChosen);
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
    // A page that came by plain HTTP has no clipboard.
    const write = async () => navigator.clipboard.writeText(text);
    const copied = write().then(() => "Copied");
    say(await copied.catch(() => "Select and copy it"));
    setTimeout(() => say("Copy"), 2000);
  };
  return <Quiet says={says} act={copy} />;
}
