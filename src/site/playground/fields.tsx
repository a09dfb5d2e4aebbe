// A model's form: one control for each field of its schema.
import { hear, Select } from "../controls.tsx";
import type { Trouble } from "../words.ts";
import { MediaField } from "./media-field.tsx";
import type { Field, FieldProps, Values } from "./schema.ts";

interface ListProps {
  readonly fields: readonly Field[];
  readonly values: Values;
  readonly change: (name: string, value: unknown) => void;
  /** What the gateway says is wrong with one of them. */
  readonly fault: Trouble | undefined;
}

/** The model itself is chosen above. */
const labels: Readonly<Record<string, string>> = { model: "Variant of the model" };

export function Fields({ fields, values, change, fault }: ListProps) {
  return fields.map((field) => {
    const { name, type } = field;
    const label = labels[name] ?? name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());
    const isWrong = fault?.field === name;
    const says = isWrong ? fault?.sentence : hintOf(field);
    const given = { field, label, says, isWrong, value: values[name], change: (to: unknown) => change(name, to) };
    if (type === "media") return <MediaField key={name} {...given} />;
    const isOn = (given.value ?? field.usual) === true;
    if (type === "switch") return <Switch key={name} label={label} isOn={isOn} turn={given.change} />;
    return (
      <div key={name} class={type === "words" || type === "json" ? "field whole" : "field"}>
        <label for={`input-${name}`}>{label}</label>
        <Control {...given} />
        <p id={`says-${name}`} class={isWrong ? "fault" : "hint"}>
          {says}
        </p>
      </div>
    );
  });
}

/** The seed has its own switch. */
function hintOf({ name, schema: { minimum, maximum, description, examples } }: Field): string {
  if (name === "seed") return "";
  const range = minimum !== undefined && maximum !== undefined && `From ${minimum} to ${maximum}.`;
  return [range, description ?? examples?.join(", ")].filter(Boolean).join(" ");
}

export function Switch({ label, isOn, turn }: Readonly<{ label: string; isOn: boolean; turn: (on: boolean) => void }>) {
  const toggle = ({ target }: Event) => turn((target as HTMLInputElement).checked);
  return (
    <label class="switch">
      <input type="checkbox" checked={isOn} onChange={toggle} />
      {label}
    </label>
  );
}

function Control({ field, value, change, isWrong }: FieldProps) {
  const { name, type, schema, usual, isRequired: required } = field;
  const { enum: options = [], maxLength, pattern, minimum: min, maximum: max } = schema;
  const text = `${value ?? (required ? usual : undefined) ?? ""}`;
  // A range that is missing refuses nothing.
  const isBad = isWrong || (text !== "" && (Number(text) < Number(min) || Number(text) > Number(max)));
  const own = { id: `input-${name}`, name, "aria-describedby": `says-${name}`, "aria-invalid": `${isBad}` };
  const said = { ...own, required, value: text, onInput: hear(change) };
  if (type === "choice") {
    const names = options.map((option) => [`${option}`, `${option}`.replaceAll("_", " ")] as const);
    const free = usual === undefined ? [["", "As the model likes"] as const] : [];
    const chosen = names.some(([option]) => option === text) ? text : `${usual ?? ""}`;
    return <Select {...own} options={[...free, ...names]} chosen={chosen} choose={change} />;
  }
  if (type === "words") return <textarea {...said} dir="auto" rows={3} maxLength={maxLength} />;
  if (type === "json") return <textarea {...said} rows={1} placeholder="JSON" spellcheck={false} />;
  const limits = type === "number" ? { min, max, step: schema.type === "integer" ? 1 : "any" } : { maxLength, pattern };
  return <input {...said} {...limits} type={type} placeholder={`${usual ?? ""}`} />;
}
