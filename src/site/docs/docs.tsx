// What the docs do with a script: code tabs, buttons that copy, and a route that opens where its anchor is asked for.
import { render } from "hono/jsx/dom";
import { Code } from "../tabs.tsx";

for (const code of document.querySelectorAll<HTMLElement>(".code")) {
  const written = [...code.querySelectorAll("pre")];
  const snippets = written.map(({ dataset, textContent }) => ({ name: `${dataset["name"]}`, code: `${textContent}` }));
  render(<Code snippets={snippets} />, code);
}
openAsked();
addEventListener("hashchange", openAsked);

function openAsked(): void {
  const asked = document.getElementById(location.hash.slice(1));
  if (!(asked instanceof HTMLDetailsElement)) return;
  asked.open = true;
  asked.scrollIntoView();
}
