// A file of the input: dropped, pasted, chosen, taken by the camera, taken from the gallery, or named by its link.
import { useLayoutEffect, useRef, useState } from "hono/jsx/dom";
import { Quiet, useFocusAfter } from "../controls.tsx";
import { Media, type MediaKind } from "../media.tsx";
import { OwnFiles } from "../own-files.tsx";
import { attached } from "./form-state.ts";
import type { Attached, FieldProps } from "./schema.ts";
import { faultOf, linkTo } from "./send-file.ts";

const nouns: Readonly<Record<MediaKind, string>> = { image: "a picture", video: "a film", audio: "a sound" };
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

  const place = useRef<HTMLFieldSetElement>(null);
  useFocusAfter(place, () => place.current?.querySelector("input")?.focus());

  const add = (file: Attached) => change([...(latest.current ?? []), file].slice(-most));
  const remove = (file: Attached) => change(files.filter((other) => other !== file));
  const take = async (given: Iterable<File>) => {
    const faults: string[] = [];
    setTrouble(undefined);
    for (const file of [...given].slice(0, most)) {
      try {
        if (!file.type.startsWith(`${kind}/`)) throw new Error(`This is not ${nouns[kind]}.`);
        add({ link: await linkTo(file, setSending), name: file.name });
      } catch (error) {
        faults.push(`${file.name}: ${faultOf(error, kind)}`);
        setTrouble(faults.join(" "));
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
    if (!input.value.trim()) return;
    if (!input.validity.valid) return setTrouble(`${input.title}.`);
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
    <fieldset ref={place} class="drop" onDrop={drag} onDragOver={drag} onPaste={paste}>
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
        pattern={`(https:|data:|${escaped(location.origin)}/).*`}
        title="A link begins with https://"
        onInput={() => setTrouble(undefined)}
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

/** The policy of the page shows nothing that comes without TLS, but for the gateway's own. */
const escaped = (origin: string) => origin.replace(/[.[\]]/g, "\\$&");

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
