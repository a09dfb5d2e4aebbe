// The page at `/gallery`: what the caller made and uploaded, and what can be done with it.
import { render } from "hono/jsx/dom";
import { linkOf } from "../media.tsx";
import { keep } from "../memory.ts";
import { type OwnFile, OwnFiles } from "../own-files.tsx";
import { sluice } from "../session.ts";
import { fromNow, troubleOf } from "../words.ts";

async function remove({ path, name }: OwnFile, gone: () => void): Promise<void> {
  if (!confirm(`Delete this file (${name})? Its link ends at once.`)) return;
  await sluice.call(path, { method: "DELETE" }).then(gone, (error) => alert(troubleOf(error).sentence));
}

function actions(file: OwnFile, gone: () => void) {
  const { path, url, kind, name, madeAt } = file;
  const label = `Delete ${name}, ${fromNow(madeAt)}`;
  return (
    <>
      <a class="button quiet" href="/" onClick={() => keep("sessionStorage", "sluice wish", { url, kind })}>
        {path.startsWith("/images") ? "Remix" : "Use"}
      </a>
      <a class="button quiet" href={linkOf(url)} download>
        Download
      </a>
      <button type="button" class="quiet" aria-label={label} onClick={() => remove(file, gone)}>
        Delete
      </button>
    </>
  );
}

const place = document.getElementById("app");
if (place) render(<OwnFiles actions={actions} />, place);
