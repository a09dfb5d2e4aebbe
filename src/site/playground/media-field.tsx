// A file of the input: dropped, pasted, chosen, taken by the camera, taken from the gallery, or named by its link.
import { useLayoutEffect, useRef, useState } from "hono/jsx/dom";
import { SluiceError } from "../../client/index.ts";
import { Quiet } from "../controls.tsx";
import { Media, type MediaKind } from "../media.tsx";
import { OwnFiles } from "../own-files.tsx";
import { sluice } from "../session.ts";
import { troubleOf } from "../words.ts";
import { attached } from "./form-state.ts";
import type { Attached, FieldProps } from "./schema.ts";

const nouns: Readonly<Record<MediaKind, string>> = { image: "a picture", video: "a film", audio: "a sound" };
/** A body of this size is taken by every model, where the deployment has no place for uploads. */
const maxInlineBytes = 7 * 1024 ** 2;
/** As phones and tablets have. */
const hasCamera = !matchMedia("(pointer: fine)").matches;

export function MediaField({ field, label, value, change, says, isWrong }: FieldProps) {
  const { "x-media": kind = "image", maxItems: most = 1 } = field.schema;
  const files = (value as readonly Attached[]).slice(0, most);
  const [sending, setSending] = useState<string>();
  const [trouble, setTrouble] = useState<string>();
  const [isChoosing, setIsChoosing] = useState(false);
  /** A file arrives after others were added or removed. */
  const latest = useRef(files);
  latest.current = files;

  const add = (file: Attached) => {
    setTrouble(undefined);
    change([...(latest.current ?? []), file].slice(-most));
  };
  const remove = (file: Attached) => change(files.filter((other) => other !== file));
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
  const choose = async ({ target }: Event) => {
    const input = target as HTMLInputElement;
    await take([...(input.files ?? [])]);
    input.value = "";
  };
  const addLink = ({ target }: Event) => {
    const input = target as HTMLInputElement;
    if (!input.value.trim() || !input.validity.valid) return;
    add(attached(input.value.trim()));
    input.value = "";
  };
  const enter = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    addLink(event);
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
  const button = (name: string, capture?: "environment") => (
    <label class="quiet">
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
          <Quiet says="Remove" label={`Remove ${file.name}`} act={() => remove(file)} />
        </div>
      ))}
      <div class="buttons">
        {button("Choose a file")}
        {hasCamera && kind !== "audio" && button("Camera", "environment")}
        <Quiet says="From your gallery" act={() => setIsChoosing(true)} />
      </div>
      <input
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
      {isChoosing && <GalleryDialog {...{ kind, add }} close={() => setIsChoosing(false)} />}
    </fieldset>
  );
}

type Chooser = Readonly<{ kind: MediaKind; add: (file: Attached) => void; close: () => void }>;

function GalleryDialog({ kind, add, close }: Chooser) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const take = (link: string) => {
    add(attached(link));
    close();
  };
  return (
    <dialog ref={dialog} class="card" aria-label="Your gallery" onClose={close}>
      <div class="bar">
        <h2>Your gallery</h2>
        <Quiet says="Close" act={close} />
      </div>
      <OwnFiles kind={kind} actions={({ url }) => <Quiet says="Take it" act={() => take(url)} />} />
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
    reader.readAsDataURL(file);
    await new Promise((resolve) => reader.addEventListener("loadend", resolve));
    return `${reader.result}`;
  }
}
