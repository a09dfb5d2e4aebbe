// What the caller made and uploaded, newest first, until it ends. The gallery shows it with what can be done; the playground
// chooses from it.
import type { Child } from "hono/jsx";
import { useLayoutEffect, useRef, useState } from "hono/jsx/dom";
import type { GalleryItem, Uploaded } from "../client/index.ts";
import { Choices, useFocusAfter } from "./controls.tsx";
import { kindOf, linkOf, Media, type MediaKind } from "./media.tsx";
import { sluice } from "./session.ts";
import { TroubleBox } from "./trouble.tsx";
import { bytes, fromNow, type Trouble, troubleOf, usd } from "./words.ts";

/** By its path the gateway deletes it. */
export type OwnFile = Pick<GalleryItem, "url" | "expiresAt" | "size"> &
  Readonly<{ path: string; kind: MediaKind; name: string; madeAt: string; cost?: number | null }>;
type Upload = Uploaded & { readonly createdAt: string };

const limit = 24;
/** Begun before the end is in sight. */
const ahead = "600px";

async function readMade(cursor: string | undefined) {
  const page = await sluice.gallery({ cursor, limit });
  const files = page.images.map(({ key, field, model, completedAt, ...image }): OwnFile => {
    return { ...image, path: `/images/${key}`, kind: kindOf(field), name: model, madeAt: completedAt };
  });
  return { files, cursor: page.cursor };
}

async function readUploads(cursor: string | undefined) {
  const query = new URLSearchParams({ limit: `${limit}`, ...(cursor !== undefined && { cursor }) });
  const page = (await (await sluice.call(`/uploads?${query}`)).json()) as { uploads: Upload[]; cursor: string | null };
  const files = page.uploads.map(({ id, type, bytes: size, createdAt, ...upload }): OwnFile => {
    const kind = type.split("/")[0] as MediaKind;
    return { ...upload, path: `/uploads/${id}`, kind, name: "Uploaded", size, madeAt: createdAt };
  });
  return { files, cursor: page.cursor };
}

const lists = {
  made: { read: readMade, empty: "Nothing yet. What you make in the playground stays here for seven days." },
  uploads: { read: readUploads, empty: "Nothing yet. Files that you give to a model stay here for a day." },
};
type ListName = keyof typeof lists;
const names = Object.entries({ made: "Made here", uploads: "Uploads" });

interface Props {
  /** Of one kind only. */
  readonly kind?: MediaKind;
  /** What can be done with a file. `gone` takes it off the list. */
  readonly actions: (file: OwnFile, gone: () => void) => Child;
}

export function OwnFiles(props: Props) {
  const [list, setList] = useState<ListName>("made");
  return (
    <>
      <Choices label="Which files" options={names} chosen={list} choose={(name) => setList(name as ListName)} />
      <List key={list} list={list} {...props} />
    </>
  );
}

function List({ list, kind, actions }: Props & { readonly list: ListName }) {
  const [files, setFiles] = useState<readonly OwnFile[]>([]);
  /** Undefined before the first page, null after the last. */
  const [cursor, setCursor] = useState<string | null>();
  const [trouble, setTrouble] = useState<Trouble>();
  const isReading = useRef(false);
  const end = useRef<HTMLButtonElement>(null);
  const tiles = useRef<HTMLUListElement>(null);
  useFocusAfter(tiles, (at) => focusTile([...(tiles.current?.children ?? [])], at));

  const more = async () => {
    if (isReading.current || cursor === null) return;
    isReading.current = true;
    setTrouble(undefined);
    try {
      const page = await lists[list].read(cursor);
      const read = page.files.filter((file) => kind === undefined || file.kind === kind);
      // The list as it is by now: some of it may have been deleted since this was asked for.
      setFiles((all) => [...all, ...read.filter(({ path }) => !all.some((file) => file.path === path))]);
      setCursor(page.cursor);
    } catch (error) {
      setTrouble(troubleOf(error));
    }
    isReading.current = false;
  };
  useLayoutEffect(() => void more(), []);
  useLayoutEffect(() => {
    if (!end.current) return;
    const watch = new IntersectionObserver(([seen]) => seen?.isIntersecting && void more(), { rootMargin: ahead });
    watch.observe(end.current);
    return () => watch.disconnect();
  }, [cursor]);

  return (
    <>
      {cursor === null && files.length === 0 && <p class="empty">{lists[list].empty}</p>}
      <ul ref={tiles} class="tiles">
        {files.map((file) => (
          <li key={file.path} class="tile card">
            <Shown file={file} />
            <div class="buttons">{actions(file, () => setFiles((all) => all.filter((one) => one !== file)))}</div>
          </li>
        ))}
      </ul>
      {trouble && <TroubleBox trouble={trouble} again={more} />}
      {cursor && !trouble && (
        <button type="button" class="quiet" ref={end} onClick={more}>
          Show more
        </button>
      )}
    </>
  );
}

/** The one that took the place of a tile which went; the heading where none is left. */
function focusTile(tiles: readonly Element[], at: number): void {
  const button = (tiles[at] ?? tiles.at(-1))?.querySelector("button");
  const heading = document.querySelector("h1");
  if (heading) heading.tabIndex = -1;
  (button ?? heading)?.focus();
}

function Shown({ file: { url, kind, name, madeAt, expiresAt, cost, size } }: { readonly file: OwnFile }) {
  const facts = [typeof cost === "number" && usd(cost), size !== null && bytes(size), `ends ${fromNow(expiresAt)}`];
  return (
    <>
      <a href={linkOf(url)} target="_blank" rel="noreferrer" aria-label={`Open ${name}, ${fromNow(madeAt)}`}>
        <Media kind={kind} url={url} says="" isSmall />
      </a>
      <p class="name">{name}</p>
      <p class="hint">{fromNow(madeAt)}</p>
      <p class="hint">{facts.filter(Boolean).join(" · ")}</p>
    </>
  );
}
