// What the routes of all resources share: the account's object, bounded bodies, ids in paths, lists as bare arrays.

import { zValidator } from "@hono/zod-validator";
import type { Context, MiddlewareHandler } from "hono";
import * as z from "zod";
import { describeFaults, type ErrorCode, Problem } from "../../errors.ts";
import { bodyErrors } from "../../wire/body-problem.ts";
import { orRefuse } from "../../wire/refusals.ts";
import type { Remote } from "../../wire/remote.ts";
import { accountOf } from "../accounts.ts";
import type { PlatformEnv } from "../auth.ts";
import { readJson } from "../large-body.ts";
import type { Account } from "./account.ts";
import { catalogueName } from "./catalogue.ts";
import * as fields from "./fields.ts";
import type { Page } from "./rows.ts";

export interface ManagementEnv extends PlatformEnv {
  Variables: PlatformEnv["Variables"] & {
    /** A stub is made anew for each call, since one that broke stays broken. */
    books: () => Remote<Account>;
    catalogue: () => Remote<Account>;
  };
}

export const openBooks: MiddlewareHandler<ManagementEnv> = async (c, next) => {
  const [namespace, account] = [c.env.ACCOUNT, c.get("account")];
  c.get("exchange").owner = account;
  c.set("books", () => accountOf(namespace, account));
  c.set("catalogue", () => accountOf(namespace, catalogueName));
  await next();
};

const bodyBytes = 1024 * 1024;

export async function readBody<T extends z.ZodType>(c: Context<ManagementEnv>, schema: T): Promise<z.output<T>> {
  const checked = z.safeParse(schema, await readJson(c.req.raw, bodyBytes));
  if (!checked.success) throw new Problem("INVALID_REQUEST", describeFaults(checked.error.issues));
  return checked.data;
}

/** The id in the path, or 400. */
export function idIn(c: Context<ManagementEnv>, name: string): string {
  const checked = fields.id.safeParse(c.req.param(name));
  if (checked.success) return checked.data;
  throw new Problem("INVALID_REQUEST", `${name}: ${checked.error.issues[0]?.message ?? "expected an id"}`);
}

export const query = <T extends z.ZodType>(schema: T) => zValidator("query", schema, orRefuse);

export type FetchPage = (after: number) => Promise<Page>;

/** One array of what all sources hold, sent as it is read: nobody holds a long list whole. */
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

/** Texts of some records each, with commas between; none is empty. */
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

export const found: readonly ErrorCode[] = ["UNAUTHORIZED", "INVALID_REQUEST", "NOT_FOUND", "UNAVAILABLE"];
export const listed: readonly ErrorCode[] = ["UNAUTHORIZED", "INVALID_REQUEST", "UNAVAILABLE"];
export const written: readonly ErrorCode[] = [...listed, ...bodyErrors];
