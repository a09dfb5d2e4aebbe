// The docs' anchors are those of code hosts, so that the same links work there and here.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { renderMarkdown } from "../../src/cli/pages/markdown.ts";
import { root } from "../../src/cli/wrangler.ts";

it.each([
  [
    ["Limits of plans", "Limits"],
    ["limits-of-plans", "limits"],
  ],
  [
    ["Limits", "Limits", "Limits"],
    ["limits", "limits-1", "limits-2"],
  ],
  [
    ["Limits", "Limits 1", "Limits"],
    ["limits", "limits-1", "limits-2"],
  ],
  [
    ["Limits-of", "Limits of", "Limits"],
    ["limits-of", "limits-of-1", "limits"],
  ],
])("of %j", (titles, ids) => {
  const { headings } = renderMarkdown(titles.map((title) => `## ${title}\n`).join("\n"), (href) => href);
  expect(headings.map(({ id }) => id)).toEqual(ids);
});

it("the docs begin with what a newcomer reads", () => {
  const start = readFileSync(join(root, "dist/site/docs/index.html"), "utf8");
  const pages = [...start.matchAll(/<h2><a href="\/docs\/([\w-]+)"/g)].map(([, name]) => name);
  expect(pages.slice(0, 4)).toEqual(["client", "clients", "media", "uploads"]);
  expect(pages.indexOf("security")).toBeLessThan(pages.indexOf("architecture"));
});
