// `npm start`: serves the gateway with the embedded platform on this machine, and says where and how to call it.
import { parseArgs } from "node:util";
import { ensureDevVars } from "./dev-vars.ts";
import { root, wrangler } from "./wrangler.ts";

const { values } = parseArgs({ options: { port: { type: "string", default: "8787" } } });
const port = Number(values.port);
if (!/^\d{1,5}$/.test(values.port) || port < 1 || port > 65_535) {
  console.error(`--port takes a number from 1 to 65535, not ${values.port}`);
  process.exit(2);
}

if (ensureDevVars(`${root}.dev.vars`)) console.log("Wrote .dev.vars with random secrets.");

const address = `http://127.0.0.1:${values.port}`;
const server = wrangler(
  ["dev", "--ip", "127.0.0.1", "--port", values.port, "--show-interactive-dev-session=false", "--log-level", "warn"],
  "inherit",
);
server.on("exit", (code) => process.exit(code ?? 1));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => server.kill(signal));

await untilServing();
console.log(`
Sluice serves at ${address}

  curl ${address}/models
`);

async function untilServing(): Promise<void> {
  for (;;) {
    const serving = await fetch(`${address}/healthz`).then(
      (response) => response.ok,
      () => false,
    );
    if (serving) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
