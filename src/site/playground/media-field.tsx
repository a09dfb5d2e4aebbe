// A file of the input: dropped, pasted, chosen, taken by the camera, taken from the gallery, or named by its link.
import { useLayoutEffect, useRef, useState } from "hono/jsx/dom";
import { SluiceError } from "../../client/index.ts";
import { Media, type MediaKind } from "../media.tsx";
import { OwnFiles } from "../own-files.tsx";
import { sluice } from "../session.ts";
import { troubleOf } from "../words.ts";
import { attached } from "./form-state.ts";
import type { Attached, FieldProps } from "./schema.ts";

const nouns: Readonly<Record<MediaKind, string>> = { image: "a picture", video: "a film", audio: "a sound" };
/** A body of this size is taken by every model, where the deployment has no place for uploads. */
const maxInlineBytes = 7 * 1024 ** 2;

interface Props extends Omit<FieldProps, "value"> {
  readonly files: readonly Attached[];
}

export function MediaField({ field, label, files: given, change, says, isWrong }: Props) {
  const { "x-media": kind = "image", maxItems: most = 1 } = field.schema;
  const files = given.slice(0, most);
  const [sending, setSending] = useState<string>();
  const [trouble, setTrouble] = useState<string>();
  const [isChoosing, setIsChoosing] = useState(false);
  const link = useRef<HTMLInputElement>(null);
  /** A file arrives after others were added or removed. */
  const latest = useRef(files);
  latest.current = files;

  const add = (file: Attached) => {
    setTrouble(undefined);
    change([...(latest.current ?? []), file].slice(-most));
  };
  const addLink = () => {
    const input = link.current;
    if (!input?.value.trim() || !input.validity.valid) return;
    add(attached(input.value.trim()));
    input.value = "";
  };
  const enter = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    addLink();
  };
  const take = async (given: Iterable<File>) => {
    for (const file of [...given].slice(0, most)) {
      try {
        if (!file.type.startsWith(`${kind}/`)) throw new Error(`This is not ${nouns[kind]}.`);
        add({ link: await linkTo(file, setSending), name: file.name });
      } catch (error) {
        setTrouble(`${file.name}: ${troubleOf(error).sentence}`);
      }
      setSending(undefined);
    }
  };
  const drag = (event: DragEvent) => {
    event.preventDefault();
    if (event.type === "drop") void take(event.dataTransfer?.files ?? []);
  };
  /** Goes to the field where it is pasted, else to the first of its kind. */
  const paste = (event: ClipboardEvent) => {
    const files = [...(event.clipboardData?.files ?? [])].filter(({ type }) => type.startsWith(`${kind}/`));
    if (event.defaultPrevented || files.length === 0) return;
    event.preventDefault();
    void take(files);
  };
  useLayoutEffect(() => {
    document.addEventListener("paste", paste);
    return () => document.removeEventListener("paste", paste);
  });
  const fault = trouble ?? (isWrong ? says : undefined);
  const choose = async ({ target }: Event) => {
    const input = target as HTMLInputElement;
    await take([...(input.files ?? [])]);
    input.value = "";
  };
  const button = (name: string, capture?: "environment") => (
    <label class={capture ? "button quiet touch" : "button quiet"}>
      {name}
      <input class="unseen" type="file" accept={`${kind}/*`} multiple={most > 1} capture={capture} onChange={choose} />
    </label>
  );

  return (
    <fieldset class="drop" onDrop={drag} onDragOver={drag} onPaste={paste}>
      <legend>{label}</legend>
      {files.map((file) => (
        <div class="file">
          <Media kind={kind} url={file.link} says={file.name} isSmall />
          <span class="name">{file.name}</span>
          <button type="button" class="quiet" onClick={() => change(files.filter((other) => other !== file))}>
            Remove<span class="unseen"> {file.name}</span>
          </button>
        </div>
      ))}
      <div class="buttons">
        {button("Choose a file")}
        {kind !== "audio" && button("Camera", "environment")}
        <button type="button" class="quiet" onClick={() => setIsChoosing(true)}>
          From your gallery
        </button>
      </div>
      <input
        ref={link}
        type="url"
        pattern="(https?|data):.*"
        title="A link that begins with https://"
        aria-label={`Link of ${nouns[kind]} for ${label.toLowerCase()}`}
        placeholder="Drop it, paste it, or its link: https://…"
        required={field.isRequired && files.length === 0}
        onBlur={addLink}
        onKeyDown={enter}
      />
      <p role="status" class={fault ? "fault" : "hint"}>
        {sending ?? fault}
      </p>
      {isChoosing && (
        <GalleryDialog
          kind={kind}
          close={(link) => {
            setIsChoosing(false);
            if (link !== undefined) add(attached(link));
          }}
        />
      )}
    </fieldset>
  );
}

function GalleryDialog({ kind, close }: { readonly kind: MediaKind; readonly close: (link?: string) => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="card" aria-label="Your gallery" onClose={() => close()}>
      <div class="bar">
        <h2>Your gallery</h2>
        <button type="button" class="quiet" onClick={() => close()}>
          Close
        </button>
      </div>
      <OwnFiles
        kind={kind}
        actions={({ url }) => (
          <button type="button" class="quiet" onClick={() => close(url)}>
            Take it
          </button>
        )}
      />
    </dialog>
  );
}

/** Uploaded at once, so that the price, the code and a reload know it. Without a place for uploads it goes with the job. */
async function linkTo(file: File, say: (sentence: string) => void): Promise<string> {
  try {
    say(`Sending ${file.name} …`);
    const onProgress = (sent: number, all: number) => say(`Sending ${file.name}: ${Math.round((100 * sent) / all)} %`);
    return (await sluice.upload(file, { onProgress })).url;
  } catch (error) {
    const hasNoPlace = error instanceof SluiceError && (error.status === 501 || error.status === 404);
    if (!hasNoPlace || file.size > maxInlineBytes) throw error;
    const reader = new FileReader();
    const read = new Promise((resolve) => reader.addEventListener("loadend", resolve));
    reader.readAsDataURL(file);
    await read;
    return `${reader.result}`;
  }
}
