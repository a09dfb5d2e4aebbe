// The page at `/gallery`: what the caller made and uploaded, and what can be done with it.
import { render } from "hono/jsx/dom";
import { Quiet } from "../controls.tsx";
import { Download, linkOf } from "../media.tsx";
import { keep } from "../memory.ts";
import { type OwnFile, OwnFiles } from "../own-files.tsx";
import { sluice, tokensUser } from "../session.ts";
import { fromNow, troubleOf } from "../words.ts";

async function remove({ path, name }: OwnFile, gone: () => void): Promise<void> {
  if (!confirm(`Delete this file (${name})? Its link ends at once.`)) return;
  await sluice.call(path, { method: "DELETE" }).then(gone, (error) => alert(troubleOf(error).sentence));
}

function actions(file: OwnFile, gone: () => void) {
  const { path, url, kind, name, madeAt } = file;
  return (
    <>
      <a class="quiet" href="/" onClick={() => keep("sessionStorage", "sluice wish", { url, kind })}>
        {path.startsWith("/images") ? "Remix" : "Use"}
      </a>
      <Download url={linkOf(url)} />
      <Quiet says="Delete" label={`Delete ${name}, ${fromNow(madeAt)}`} act={() => remove(file, gone)} />
    </>
  );
}

const page = (
  <>
    <p class="hint">{tokensUser}</p>
    <OwnFiles actions={actions} />
  </>
);
render(page, document.getElementById("app") as HTMLElement);
