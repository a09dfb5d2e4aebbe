// What the README and docs/ name is there, what must be named is, and what they show is run or measured.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { unstable_readConfig as readWranglerConfig } from "wrangler";
import manifest from "../package.json" with { type: "json" };
import { models } from "../src/models/index.ts";
import { settingNames } from "../src/settings.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const pages = readdirSync(join(root, "docs"))
  .filter((name) => name.endsWith(".md"))
  .map((name) => `docs/${name}`);
const documents = ["README.md", ...pages, "src/json/README.md"];
/** Code is no text: a `[` in it is no link. */
const proseOf = (document: string) => read(document).replace(/^```[\s\S]*?^```/gm, "");
const { vars, secrets, durable_objects: objects } = readWranglerConfig({ config: join(root, "wrangler.toml") });

/** What stands under a heading, without what stands under others of its level. */
function sectionOf(document: string, heading: string): string {
  const [, section] = read(document).split(`\n## ${heading}\n`);
  if (section === undefined) throw new Error(`${document} has no section "${heading}"`);
  return section.split("\n## ")[0] ?? "";
}

/** The names in the first column of the table under a heading. */
function namesUnder(document: string, heading: string): string[] {
  const rows = sectionOf(document, heading).match(/^\| `.*?\|/gm) ?? [];
  return rows.flatMap((row) => [...row.matchAll(/`([^`]+)`/g)].map(([, name]) => name as string));
}

interface Link {
  readonly text: string;
  readonly path: string;
  readonly anchor: string | undefined;
}

/** Those that lead into this repository, as seen from its root. */
function linksIn(markdown: string, document: string): Link[] {
  return [...markdown.matchAll(/\[([^\]]*)\]\(([^)\s]+)\)/g)].flatMap(([, text = "", to = ""]) => {
    if (/^[a-z]+:/.test(to)) return [];
    const [path = "", anchor] = to.split("#");
    return [{ text, path: path === "" ? document : join(dirname(document), path), anchor }];
  });
}

/** As pages of repositories make an anchor of a heading. */
function anchorsOf(document: string): string[] {
  const headings = [...proseOf(document).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => heading);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

/** Whether a source declares the name: as a function, a constant, a type, or a method of a class. */
function declares(path: string, name: string): boolean {
  const source = read(path);
  const keywords = "(?:function|const|class|interface|type)";
  const method = new RegExp(`^ {2}(?:async )?${name}(?:<[^>]*>)?\\([^;]*?\\{$`, "m");
  return new RegExp(`^(?:export )?(?:async )?${keywords} ${name}\\b`, "m").test(source) || method.test(source);
}

describe("the README", () => {
  it("is read in one go", () => {
    expect(read("README.md").trimEnd().split("\n").length).toBeLessThanOrEqual(150);
  });

  it("gives a reason for every dependency, and for no other", () => {
    const packages = [...Object.keys(manifest.dependencies), ...Object.keys(manifest.devDependencies)];
    expect(namesUnder("README.md", "Dependencies").sort()).toEqual(packages.sort());
  });

  it("leads to every page", () => {
    const led = linksIn(sectionOf("README.md", "Read on"), "README.md").map(({ path }) => path);
    expect(led.sort()).toEqual([...pages].sort());
  });

  it("says how many models there are", () => {
    const counts = documents.flatMap((path) => [...read(path).matchAll(/(\d+)(?: public)? models/gi)]);
    expect(counts.map(([, count]) => Number(count))).toEqual(counts.map(() => models.length));
    expect(counts.length).toBeGreaterThan(1);
  });

  it("has the figures of docs/benchmarks.md, and no others", () => {
    const rowsIn = (document: string, mark: string) => {
      const [, table = ""] = read(document).split(`<!-- bench ${mark} -->`);
      return (table.split("<!-- end")[0]?.match(/^\|.*\|$|^<sub>.*|^!\[.*(?=\()/gm) ?? []).map((row) =>
        row.split(" | "),
      );
    };
    for (const bench of ["relays", "growth"]) {
      const all = rowsIn("docs/benchmarks.md", bench);
      const brief = rowsIn("README.md", `${bench} in brief`).filter(([first]) => !/^\| What|^\|---/.test(first ?? ""));
      expect(brief.length).toBeGreaterThan(0);
      for (const row of brief) {
        const [first, ...cells] = row.map((cell) => cell.replace(/ \|$/, ""));
        const like = all
          .filter(([name]) => name === first)
          .map((cells) => cells.map((cell) => cell.replace(/ \|$/, "")));
        expect(like.filter((known) => cells.every((cell) => known.includes(cell))).length, first).toBe(1);
      }
    }
  });
});

describe("docs/settings.md", () => {
  it("describes every setting, and no other", () => {
    expect(namesUnder("docs/settings.md", "All settings").sort()).toEqual([...settingNames].sort());
  });
});

describe("docs/architecture.md", () => {
  const page = "docs/architecture.md";

  it("draws src/ as it is", () => {
    const [, tree = ""] = /```\n(src\/\n[\s\S]*?)```/.exec(read(page)) ?? [];
    const drawn = [...tree.matchAll(/^ {2}([\w.-]+)\/? /gm)].map(([, entry]) => entry);
    const generated = "env.d.ts";
    expect(drawn.sort()).toEqual(
      readdirSync(join(root, "src"))
        .filter((entry) => entry !== generated)
        .sort(),
    );
  });

  it("draws the gateway's rooms as they are", () => {
    const rows = sectionOf(page, "The tree").match(/^\| `.*?\|/gm) ?? [];
    const drawn = rows.flatMap((row) => [...row.matchAll(/`([\w-]+)\/`/g)].map(([, room]) => room));
    const gateway = join(root, "src/gateway");
    expect(drawn.sort()).toEqual(
      readdirSync(gateway)
        .filter((entry) => statSync(join(gateway, entry)).isDirectory())
        .sort(),
    );
  });

  it("walks one request in at most twelve steps, each of which leads to a function", () => {
    const steps = sectionOf(page, "One `runsync`, there and back").match(/^\d+\. .*(?:\n {3}.*)*/gm) ?? [];
    expect(steps.length).toBeGreaterThan(5);
    expect(steps.length).toBeLessThanOrEqual(12);
    for (const step of steps) {
      const [first] = linksIn(step, page);
      expect(step, "begins with its link").toMatch(/^\d+\. \[`/);
      expect(first?.path, step).toMatch(/^src\/.*\.ts$/);
    }
  });

  it("says who owns each Durable Object", () => {
    const bound = objects.bindings.map((one: { name: string; class_name: string }) => [one.name, one.class_name]);
    const rows = sectionOf(page, "Who owns which object").match(/^\| `.*?\|/gm) ?? [];
    const said = rows.map((row) => [...row.matchAll(/`(\w+)`/g)].map(([, name]) => name));
    expect(said.sort()).toEqual(bound.sort());
  });

  it("explains a dozen words", () => {
    expect(sectionOf(page, "Glossary").match(/^\| \*\*/gm)).toHaveLength(12);
  });
});

describe.each(documents)("%s", (document) => {
  it("links only to what is there", () => {
    const dead = linksIn(proseOf(document), document).filter(({ path, anchor }) => {
      if (!existsSync(join(root, path))) return true;
      return anchor !== undefined && !anchorsOf(path).includes(anchor);
    });
    expect(dead).toEqual([]);
  });

  it("links names to the files that declare them", () => {
    const named = linksIn(proseOf(document), document).flatMap(({ text, path }) => {
      const [, name] = /^`(\w+)`$/.exec(text) ?? [];
      return name !== undefined && path.endsWith(".ts") ? [{ name, path }] : [];
    });
    expect(named.filter(({ name, path }) => !existsSync(join(root, path)) || !declares(path, name))).toEqual([]);
  });

  it("names only scripts and files that are there", () => {
    const text = read(document);
    const scripts = [...text.matchAll(/npm run ([a-z:-]+)/g)].map(([, script]) => script as string);
    expect(scripts.filter((script) => !(script in manifest.scripts))).toEqual([]);
    const paths = [...text.matchAll(/`((?:src|test|docs|\.ci)\/[\w./-]*)`/g)].map(([, path]) => path as string);
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  it("shows no program that no test runs", () => {
    const idle = programsIn(document).filter(({ heading, language, lines }) => {
      if (language === "json") return JSON.parse(lines) === undefined;
      if (runnable.includes(language) && ran.has(`${document} ${heading} ${language}`)) return false;
      return !isCommands(language, lines);
    });
    expect(idle).toEqual([]);
  });
});

interface Program {
  readonly heading: string;
  readonly language: string;
  readonly lines: string;
}

const runnable = ["js", "jsx", "ts", "sh", "bash"];
/** A recipe names a repository and a registry, which no test has. */
const recipe = "yaml";

/** The blocks that name their language, each with the heading right above it. */
function programsIn(document: string): Program[] {
  let heading = "";
  const found = read(document).matchAll(/^#+ (.*)$|^ *```(\w+)\n([\s\S]*?)^ *```$/gm);
  return [...found].flatMap(([, title, language, lines = ""]) => {
    heading = title ?? heading;
    return language === undefined || language === recipe ? [] : [{ heading, language, lines }];
  });
}

/** Commands of this repository and of tools that are installed: there is nothing in them to be wrong but their names. */
function isCommands(language: string, lines: string): boolean {
  const command = /^(npm (start|test|run [a-z:-]+)|git add|docker run|[A-Z_]+=\S+)\b/;
  return (
    language === "sh" &&
    lines
      .trim()
      .split("\n")
      .every((line) => command.test(line))
  );
}

/** What the tests run, by how they ask for it. */
const ran = new Set(
  ["test/e2e", "test/clients"].flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith(".test.ts"))
      .flatMap((name) => [...read(`${folder}/${name}`).matchAll(/block(?:sUnder)?\("([^"]+)", "([^"]+)", "(\w+)"\)/g)])
      .map(([, document, heading, language]) => `${document} ${heading} ${language}`),
  ),
);

describe("wrangler.toml", () => {
  it("declares every setting once, as a variable or a secret, with nothing in it", () => {
    expect([...Object.keys(vars), ...(secrets?.required ?? [])].sort()).toEqual([...settingNames].sort());
    expect(Object.values(vars).filter((value) => value !== "")).toEqual([]);
  });
});
