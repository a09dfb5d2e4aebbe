// The README's own code blocks, to be run as they stand.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../../src/cli/wrangler.ts";

/** Under a heading, of whatever level, and in a language: the blocks in their order. */
export function blocksUnder(heading: string, language: string): string[] {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const [, level = "", section] = new RegExp(`\n(#{2,3}) ${escaped(heading)}\n([^]*)`).exec(readme) ?? [];
  if (section === undefined) throw new Error(`the README has no section "${heading}"`);
  const [own = ""] = section.split(new RegExp(`\n#{2,${level.length}} `));
  const blocks = [...own.matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``, "g"))].map(([, lines = ""]) => lines);
  if (blocks.length === 0) throw new Error(`the section "${heading}" has no ${language}`);
  return blocks;
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** As a module's text that finds these names in its scope; it answers with what it exports. */
export async function runBlock(
  code: string,
  names: Readonly<Record<string, unknown>>,
): Promise<Record<string, unknown>> {
  const exported = [...code.matchAll(/^export (?:async )?function (\w+)/gm)].map(([, name]) => name);
  const text = `return (async () => {\n${code.replace(/^export /gm, "")}\nreturn { ${exported.join(", ")} };\n})()`;
  return new Function(...Object.keys(names), text)(...Object.values(names)) as Promise<Record<string, unknown>>;
}
