// The Worker's bundle, as a deployment has it. wrangler takes seconds to make one, which is too long after an edit, so
// esbuild is asked directly with wrangler's options; test/e2e/bundle.test.ts holds that the bytes are the same.
import { type BuildFailure, type BuildResult, build, context, stop } from "esbuild";
import { root } from "./wrangler.ts";

export interface Bundle {
  readonly code: string;
  readonly sourceMap: string;
  /** The files that it was made of, seen from the checkout. */
  readonly inputs: readonly string[];
}

export interface Bundler {
  /** Reads only what has changed since the last time. Throws where the source is broken, with each fault's place. */
  build(): Promise<Bundle>;
  close(): Promise<void>;
}

/** Left alone, esbuild's process may say with a stack that nobody answers it any more. */
process.once("exit", () => void stop());

const nodeEnv = JSON.stringify("production");

export async function openBundler(main: string, folder = root): Promise<Bundler> {
  const esbuild = await context({
    absWorkingDir: folder,
    entryPoints: [main],
    outdir: "bundle",
    bundle: true,
    write: false,
    metafile: true,
    format: "esm",
    target: "es2024",
    supported: { "import-source": true },
    conditions: ["workerd", "worker", "browser"],
    external: ["node:*", "cloudflare:*"],
    loader: { ".js": "jsx", ".mjs": "jsx", ".cjs": "jsx" },
    define: {
      "navigator.userAgent": JSON.stringify("Cloudflare-Workers"),
      "process.env.NODE_ENV": nodeEnv,
      "global.process.env.NODE_ENV": nodeEnv,
      "globalThis.process.env.NODE_ENV": nodeEnv,
    },
    minify: true,
    keepNames: false,
    sourcemap: true,
    // Only places are looked up in the map; with the sources in it, it is four times as large.
    sourcesContent: false,
    logLevel: "silent",
  });
  return {
    build: async () => outputOf(await esbuild.rebuild().catch(sayFaults)),
    close: () => esbuild.dispose(),
  };
}

/** A module for browsers, with all that it imports but for packages. */
export async function bundleForBrowsers(main: string, folder = root): Promise<string> {
  const built = await build({
    absWorkingDir: folder,
    entryPoints: [main],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    packages: "external",
    minify: true,
    logLevel: "silent",
  }).catch(sayFaults);
  return built.outputFiles[0]?.text ?? "";
}

function outputOf({ outputFiles = [], metafile }: BuildResult): Bundle {
  const textOf = (ending: string) => outputFiles.find(({ path }) => path.endsWith(ending))?.text ?? "";
  return { code: textOf(".js"), sourceMap: textOf(".js.map"), inputs: Object.keys(metafile?.inputs ?? {}) };
}

/** Each fault by its place, as editors and terminals link it. */
export function sayFaults(error: BuildFailure): never {
  if (!Array.isArray(error.errors)) throw error;
  const faults = error.errors.map(({ text, location }) =>
    location ? `${location.file}:${location.line}:${location.column + 1}: ${text}` : text,
  );
  throw new Error(faults.join("\n"));
}
