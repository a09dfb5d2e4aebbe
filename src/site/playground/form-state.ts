// What the form holds, and what the last results were made of. Both are remembered in this browser alone, but for files that
// were never uploaded: the gateway keeps no prompts.
import { keep, recall, shaped } from "../memory.ts";
import type { Attached, Field, Values } from "./schema.ts";

export interface FormState {
  readonly model: string;
  /** The model beside it, where two are compared. */
  readonly rival?: string | undefined;
  /** By kind, the model that was chosen of it last. */
  readonly lastOf: Readonly<Record<string, string>>;
  readonly keepsSeed: boolean;
  /** Members that models share: a prompt stays when another model is chosen. */
  readonly shared: Values;
  /** The other members, by model. */
  readonly own: Readonly<Record<string, Values>>;
}

const places = { form: "sluice form", recipes: "sluice recipes", wish: "sluice wish" };
const keptRecipes = 60;
const longestRecipe = 20_000;
const shared = /^(prompt|negative_prompt|seed|image|video|audio)$/;
/** Models that take one picture and models that take several have them in common. So have prompts and a first message. */
const sharedName = (name: string) => ({ images: "image", messages: "prompt" })[name] ?? name;

const firstState: FormState = {
  model: "black-forest-labs-flux-1-schnell",
  lastOf: {},
  keepsSeed: false,
  shared: { prompt: "a lighthouse at dusk" },
  own: {},
};
/** What a result was made of. */
const noRecipe = { url: "", model: "", input: {} as Values };

/** The form as it was left. The gallery may wish for one of its files: as it was made, else as an input. */
export function beginning(forms: ReadonlyMap<string, readonly Field[]>): FormState {
  const kept = recall("localStorage", places.form, firstState);
  const state = forms.has(kept.model) ? kept : { ...kept, model: `${[...forms.keys()][0]}` };
  const wish = recall("sessionStorage", places.wish, { url: "", kind: "" });
  keep("sessionStorage", places.wish, undefined);
  if (wish.url === "") return state;
  const { model, input } = readRecipes().find(({ url }) => url === wish.url) ?? noRecipe;
  const fields = forms.get(model);
  if (fields) return withInput(state, model, fields, input);
  for (const [id, fields] of forms) {
    const field = fields.find(({ schema }) => schema["x-media"] === wish.kind);
    if (field) return withFile(state, id, field.name, wish.url);
  }
  return state;
}

export function keepForm(state: FormState): void {
  const isInline = (one: Attached | null) => one?.link?.startsWith?.("data:");
  const withoutFiles = (_: string, value: unknown) =>
    Array.isArray(value) ? value.filter((one) => !isInline(one)) : value;
  keep("localStorage", places.form, JSON.parse(JSON.stringify(state, withoutFiles)));
}

const readRecipes = () =>
  recall<readonly unknown[]>("localStorage", places.recipes, []).map((recipe) => shaped(recipe, noRecipe));

export function keepRecipe(recipe: typeof noRecipe): void {
  if (JSON.stringify(recipe).length > longestRecipe) return;
  const others = readRecipes().filter(({ url }) => url !== recipe.url);
  keep("localStorage", places.recipes, [recipe, ...others].slice(0, keptRecipes));
}

export function valuesOf(state: FormState, model: string, fields: readonly Field[]): Values {
  const filled = ({ name, type }: Field) => {
    const common = sharedName(name);
    const value = shared.test(common) ? state.shared[common] : state.own[model]?.[common];
    const files = shaped(value, [] as unknown[]).map((file) => shaped(file, attached("")));
    if (type === "media") return files.filter(({ link }) => link !== "");
    return typeof value === "object" ? undefined : value;
  };
  return Object.fromEntries(fields.map((field) => [field.name, filled(field)]));
}

export function withValue(state: FormState, model: string, name: string, value: unknown): FormState {
  const common = sharedName(name);
  // Whoever types a seed wants it.
  if (name === "seed") return { ...state, keepsSeed: value !== "", shared: { ...state.shared, seed: value } };
  if (shared.test(common)) return { ...state, shared: { ...state.shared, [common]: value } };
  return { ...state, own: { ...state.own, [model]: { ...state.own[model], [name]: value } } };
}

/** The form of the model with the file. */
export const withFile = (state: FormState, model: string, name: string, url: string): FormState => ({
  ...withValue(state, model, name, [attached(url)]),
  model,
  rival: undefined,
});

/** The form as it was when this was run. */
function withInput(state: FormState, model: string, fields: readonly Field[], input: Values): FormState {
  const filled = (given: FormState, { name, type }: Field) => {
    const value = input[name] ?? "";
    const shown = type === "media" ? [value || []].flat().map((link) => attached(`${link}`)) : value;
    return withValue(given, model, name, type === "json" && value ? JSON.stringify(value) : shown);
  };
  return fields.reduce(filled, { ...state, model, rival: undefined });
}

export function attached(link: string): Attached {
  return { link, name: link.startsWith("data:") ? "a file" : link.split("/").at(-1) || link };
}
