// What is built is held against what lies in the folder: by names that are the same on every system.
import { posix, win32 } from "node:path";
import { expect, it } from "vitest";
import { nameIn } from "../../src/cli/file-names.ts";

it.each([
  ["here", posix, "/a clone/dist/site", "/a clone/dist/site/site/style.css", "site/style.css"],
  ["on Windows", win32, "C:\\a clone\\dist\\site", "C:\\a clone\\dist\\site\\site\\style.css", "site/style.css"],
  ["on Windows, at the top", win32, "C:\\clone\\dist\\site", "C:\\clone\\dist\\site\\index.html", "index.html"],
  ["on Windows, with esbuild's slashes", win32, "C:\\clone", "C:/clone/site/docs.js", "site/docs.js"],
  ["where a name has a backslash", posix, "/clone", "/clone/docs/a\\b.png", "docs/a\\b.png"],
])("a file's name, %s", (_, system, folder, path, name) => {
  expect(nameIn(folder, path, system)).toBe(name);
});
