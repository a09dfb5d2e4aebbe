// What the form holds, and what the last results were made of. Both are remembered in this browser alone, but for files that
// were never uploaded: the gateway keeps no prompts.
import { keep, recall } from "../memory.ts";
import type { Attached, Field, Values } from "./schema.ts";

export interface FormState {
  readonly model: string;
  /** The model beside it, where two are compared. */
  readonly rival?: string | undefined;
  readonly keepsSeed: boolean;
  /** Members that models share: a prompt stays when another model is chosen. */
  readonly shared: Values;
  /** The other members, by model. */
  readonly own: Readonly<Record<string, Values>>;
}

/** What a result was made of. */
export interface Recipe {
  readonly url: string;
  readonly model: string;
  readonly input: Values;
}

const places = { form: "sluice form", recipes: "sluice recipes" };
const keptRecipes = 60;
const longestRecipe = 20_000;
const shared = /^(prompt|negative_prompt|seed|image|video|audio)$/;
/** Models that take one picture and models that take several have them in common. So have prompts and a first message. */
const sharedName = (name: string) => ({ images: "image", messages: "prompt" })[name] ?? name;

const firstState: FormState = {
  model: "black-forest-labs-flux-1-schnell",
  keepsSeed: false,
  shared: { prompt: "a lighthouse at dusk" },
  own: {},
};

export const readForm = (): FormState => ({ ...firstState, ...recall<FormState>("localStorage", places.form) });

export function keepForm(state: FormState): void {
  const isInline = (one: Attached | null) => one?.link?.startsWith?.("data:");
  const withoutFiles = (_: string, value: unknown) =>
    Array.isArray(value) ? value.filter((one) => !isInline(one)) : value;
  keep("localStorage", places.form, JSON.parse(JSON.stringify(state, withoutFiles)));
}

const readRecipes = () => recall<Recipe[]>("localStorage", places.recipes) ?? [];
export const recipeOf = (url: string) => readRecipes().find((recipe) => recipe.url === url);

export function keepRecipe(recipe: Recipe): void {
  if (JSON.stringify(recipe).length > longestRecipe) return;
  const others = readRecipes().filter(({ url }) => url !== recipe.url);
  keep("localStorage", places.recipes, [recipe, ...others].slice(0, keptRecipes));
}

export function valuesOf(state: FormState, model: string, fields: readonly Field[]): Values {
  const filled = (name: string) => (shared.test(name) ? state.shared[name] : state.own[model]?.[name]);
  return Object.fromEntries(fields.map(({ name }) => [name, filled(sharedName(name))]));
}

export function withValue(state: FormState, model: string, name: string, value: unknown): FormState {
  const common = sharedName(name);
  // Whoever types a seed wants it.
  if (name === "seed") return { ...state, keepsSeed: value !== "", shared: { ...state.shared, seed: value } };
  if (shared.test(common)) return { ...state, shared: { ...state.shared, [common]: value } };
  return { ...state, own: { ...state.own, [model]: { ...state.own[model], [name]: value } } };
}

/** The form as it was when this was run. */
export function withInput(state: FormState, model: string, fields: readonly Field[], input: Values): FormState {
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
