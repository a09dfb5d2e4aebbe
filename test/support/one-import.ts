// The pool imports the Worker's entry anew before every call of a Durable Object, at every alarm and fetch, and asks Vite,
// in another process, where it lies: a third of the CPU of a whole run. Here the first import holds as long as the isolate.
interface ModuleRunner {
  import(specifier: string): Promise<unknown>;
}
const { moduleRunner } = (globalThis as unknown as { __vitest_mocker__: { moduleRunner: ModuleRunner } })
  .__vitest_mocker__;
const entry = "/src/index.ts";
const ask = moduleRunner.import.bind(moduleRunner);
let imported: Promise<unknown> | undefined;

moduleRunner.import = (specifier) => {
  if (!specifier.endsWith(entry)) return ask(specifier);
  imported ??= ask(specifier);
  return imported;
};
