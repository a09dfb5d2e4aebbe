// What the build hands to the pages, and gets of them.

export interface Given {
  /** Markdown, by the file's name without its ending. */
  readonly docs: ReadonlyMap<string, string>;
  readonly openApi: unknown;
  readonly turnstileSiteKey: string | undefined;
}

/** HTML, by the file's name. */
export type MakePages = (given: Given) => ReadonlyMap<string, string>;
