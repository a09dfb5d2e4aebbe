// `npm start`: serves the gateway with the embedded platform on this machine, and says where and how to call it.
import { createServer } from "node:net";
import { parseArgs } from "node:util";
import { ensureDevVars } from "./dev-vars.ts";
import { root, wrangler } from "./wrangler.ts";

const { values } = parseArgs({ options: { port: { type: "string", default: "8787" } } });
const port = Number(values.port);
if (!/^\d{1,5}$/.test(values.port) || port < 1 || port > 65_535) {
  console.error(`--port takes a number from 1 to 65535, not ${values.port}`);
  process.exit(2);
}

if (!(await isFree(port))) {
  console.error(`Port ${port} is taken. Choose another: npm start -- --port ${port === 65_535 ? 8787 : port + 1}`);
  process.exit(1);
}
if (ensureDevVars(`${root}.dev.vars`)) console.log("Wrote .dev.vars with random secrets.");

const address = `http://127.0.0.1:${port}`;
const server = wrangler(
  ["dev", "--ip", "127.0.0.1", "--port", `${port}`, "--show-interactive-dev-session=false", "--log-level", "warn"],
  "inherit",
);
server.on("exit", (code) => process.exit(code ?? 1));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => server.kill(signal));
endWithNpm(process.ppid);

await untilServing();
console.log(`
Sluice serves at ${address}

  curl ${address}/models

A first picture:

  TOKEN=$(curl -s -X POST ${address}/sessions -d '{}' | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')
  curl -s ${address}/v2/black-forest-labs-flux-1-schnell/runsync -H "Authorization: Bearer $TOKEN" \\
    -d '{"input":{"prompt":"a lighthouse at dusk","seed":7}}'
`);

/** A signal to npm ends its shell, which need not pass it on: then nobody would be left to end this. */
function endWithNpm(parent: number): void {
  if (process.env["npm_lifecycle_event"] === undefined) return;
  setInterval(() => process.ppid === parent || server.kill("SIGTERM"), 500).unref();
}

/** Asked first, since whoever holds the port might answer in our name. */
function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}

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
