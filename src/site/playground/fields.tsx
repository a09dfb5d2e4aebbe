// A model's form: one control for each field of its schema.
import { useId } from "hono/jsx/dom";
import { hear, Select } from "../controls.tsx";
import { MediaField } from "./media-field.tsx";
import type { Attached, Field, FieldProps, Values } from "./schema.ts";

interface ListProps {
  readonly fields: readonly Field[];
  readonly values: Values;
  readonly change: (name: string, value: unknown) => void;
  /** What the gateway says is wrong with one of them. */
  readonly fault?: { readonly field: string | undefined; readonly sentence: string } | undefined;
}

export function Fields({ fields, values, change, fault }: ListProps) {
  return (
    <>
      {fields.map((field) => (
        <FieldView
          key={field.name}
          field={field}
          label={field.name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase())}
          value={values[field.name]}
          change={(value) => change(field.name, value)}
          says={fault?.field === field.name ? fault.sentence : hintOf(field)}
          isWrong={fault?.field === field.name}
        />
      ))}
    </>
  );
}

/** The seed has its own switch. */
const hintOf = ({ name, schema }: Field) =>
  name === "seed" ? "" : (schema.description ?? schema.examples?.join(", "));

function FieldView(props: FieldProps) {
  const { field, label, value, change, says, isWrong } = props;
  const id = useId();
  if (field.type === "media") return <MediaField {...props} files={(value ?? []) as readonly Attached[]} />;
  if (field.type === "switch") {
    return <Switch label={label} isOn={(value ?? field.usual) === true} turn={change} />;
  }
  return (
    <div class={field.type === "words" || field.type === "json" ? "field whole" : "field"}>
      <label for={id}>{label}</label>
      <Control {...props} own={{ id, "aria-describedby": `${id}-says`, "aria-invalid": `${isWrong}` }} />
      <p id={`${id}-says`} class={isWrong ? "fault" : "hint"}>
        {says}
      </p>
    </div>
  );
}

interface SwitchProps {
  readonly label: string;
  readonly isOn: boolean;
  readonly turn: (isOn: boolean) => void;
}

export function Switch({ label, isOn, turn }: SwitchProps) {
  const toggle = ({ target }: Event) => turn((target as HTMLInputElement).checked);
  return (
    <label class="switch">
      <input type="checkbox" checked={isOn} onChange={toggle} />
      {label}
    </label>
  );
}

function Control({ field, value, change, own }: FieldProps & { readonly own: Readonly<Record<string, unknown>> }) {
  const { name, type, schema, usual, isRequired: required } = field;
  const { enum: options = [], maxLength, pattern, minimum: min, maximum: max } = schema;
  const text = `${value ?? (required ? usual : undefined) ?? ""}`;
  const said = { ...own, name, required, value: text, onInput: hear(change) };
  if (type === "choice") {
    const names = options.map((option) => [`${option}`, `${option}`.replaceAll("_", " ")] as const);
    const free = usual === undefined ? [["", "As the model likes"] as const] : [];
    const chosen = names.some(([option]) => option === text) ? text : `${usual ?? ""}`;
    return <Select {...own} name={name} options={[...free, ...names]} chosen={chosen} choose={change} />;
  }
  if (type === "words") return <textarea {...said} rows={3} maxLength={maxLength} />;
  if (type === "json") return <textarea {...said} rows={1} placeholder="JSON" spellcheck={false} />;
  const limits = type === "number" ? { min, max, step: schema.type === "integer" ? 1 : "any" } : { maxLength, pattern };
  return <input {...said} {...limits} type={type} placeholder={`${usual ?? ""}`} />;
}
