// Lists of records as one JSON array, sent as it is read.
import type { Page } from "./rows.ts";

export type FetchPage = (after: number) => Promise<Page>;

/** Answers one array of all records, sent page by page: a long list is never held whole. */
export async function answerList(first: readonly unknown[], ...sources: readonly FetchPage[]): Promise<Response> {
  const texts = pages(first, sources);
  const { value } = await texts.next();
  const encoder = new TextEncoder();
  let open = `[${value ?? ""}`;
  const body = new ReadableStream({
    async pull(controller) {
      const { value, done } = await texts.next();
      controller.enqueue(encoder.encode(done ? `${open}]` : open));
      if (done) controller.close();
      open = `,${value}`;
    },
  });
  return new Response(body, { headers: { "Content-Type": "application/json" } });
}

/** Yields the texts of some records at a time, joined by commas, never an empty text. */
async function* pages(first: readonly unknown[], sources: readonly FetchPage[]): AsyncGenerator<string, undefined> {
  if (first.length > 0) yield first.map((record) => JSON.stringify(record)).join(",");
  for (const fetchPage of sources) {
    for (let after: number | null = 0; after !== null; ) {
      const page: Page = await fetchPage(after);
      if (page.items.length > 0) yield page.items.join(",");
      after = page.next;
    }
  }
}
