// The code blocks of the README and of docs/, to be run as they stand.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../../src/cli/wrangler.ts";

/** Under a heading, of whatever level, and in a language: the blocks in their order. `test/readme.test.ts` finds the calls. */
export function blocksUnder(document: string, heading: string, language: string): string[] {
  const text = readFileSync(join(root, document), "utf8");
  const [, level = "", section] = new RegExp(`\n(#{2,3}) ${escaped(heading)}\n([^]*)`).exec(text) ?? [];
  if (section === undefined) throw new Error(`${document} has no section "${heading}"`);
  const [own = ""] = section.split(new RegExp(`\n#{2,${level.length}} `));
  const blocks = [...own.matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``, "g"))].map(([, lines = ""]) => lines);
  if (blocks.length === 0) throw new Error(`the section "${heading}" has no ${language}`);
  return blocks;
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** As a module's text that finds these names in its scope, also those that it imports; it answers with what it exports. */
export async function runBlock(
  code: string,
  names: Readonly<Record<string, unknown>>,
): Promise<Record<string, unknown>> {
  const exported = [...code.matchAll(/^export (?:async )?function (\w+)/gm)].map(([, name]) => name);
  const text = `return (async () => {\n${code.replace(/^import .*$/gm, "").replace(/^export /gm, "")}\nreturn { ${exported.join(", ")} };\n})()`;
  return new Function(...Object.keys(names), text)(...Object.values(names)) as Promise<Record<string, unknown>>;
}
