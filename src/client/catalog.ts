// What each model takes and makes, as types. `models.ts` is made from the catalog's schemas: `npm run types` writes it.
import type { Models } from "./models.ts";
import type { TextChunk, TextOutput } from "./outputs.ts";

export type { Models } from "./models.ts";
export type * from "./outputs.ts";

export type ModelId = keyof Models;
/** A model of the catalog, or any other endpoint that the operator opened. */
export type AnyModel = ModelId | (string & {});
export type InputOf<M extends string> = M extends ModelId ? Models[M]["input"] : Readonly<Record<string, unknown>>;
/** What a model of texts streams; other models tell nothing of their pieces. */
export type ChunkOf<M extends string> = OutputOf<M> extends TextOutput ? TextChunk : unknown;
export type OutputOf<M extends string> = M extends ModelId ? Models[M]["output"] : unknown;
