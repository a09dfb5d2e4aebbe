// `npm start`: serves the gateway with the embedded platform on this machine, and says where and how to call it.
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, relative, resolve } from "node:path";
import { addMissingSecrets, ensureDevVars } from "./dev-vars.ts";
import { endWhenTold } from "./ending.ts";
import { addressOf, firstScreen } from "./first-screen.ts";
import { ServerLog } from "./log.ts";
import { claimState, recordWorkerd } from "./orphan.ts";
import { command, devVarsFile, isPackage } from "./place.ts";
import { SourceWatch } from "./rebuilding.ts";
import { help, readOptions } from "./start-options.ts";

const options = readOptions(process.argv.slice(2));
if (typeof options === "string") fail(options, 2);
if (options.help) {
  process.stdout.write(help);
  process.exit();
}
const { host, port, plan, state: folder } = options;
const state = resolve(folder);
const devVars = devVarsFile(state);

const serving = await claimState(state).catch(({ code }: NodeJS.ErrnoException) =>
  fail(`The folder ${folder} cannot be written: ${code}. Choose another: ${command} --state <folder>`),
);
const probed = await probe();
if (probed !== undefined && probed !== "EADDRINUSE")
  fail(`${host} is no address of this machine to listen on: ${probed}`);
if (serving !== undefined) fail(stateIsServed(serving));
if (probed !== undefined) fail(portIsTaken());

const isTerminal = process.stdout.isTTY === true;
const log = new ServerLog(
  { json: options.json || !isTerminal, colours: isTerminal && process.stdout.hasColors() },
  (line) => process.stdout.write(`${line}\n`),
);
const shownDevVars = relative("", devVars);
const written = ensureOwnSettings();
if (written !== undefined && !options.json) console.log(written);
recordWorkerd(state);
endWhenTold();

// Loaded only now: help and refusals need none of it.
const { DevServer, explain } = await import("./dev-server.ts");
const sources = new SourceWatch(devVars);
const settings: Record<string, string> = plan === undefined ? {} : { SESSION_PLAN: plan };
const server = await DevServer.start({ host, port, state, devVars, settings }, log).catch(async (error: unknown) => {
  // Another process may have taken the port meanwhile; the runtime does not always say so.
  const isTaken = (error as NodeJS.ErrnoException).code === "ERR_ADDRESS_IN_USE" || (await probe()) === "EADDRINUSE";
  return fail(isTaken ? portIsTaken() : explain(error));
});
console.log(
  options.json
    ? JSON.stringify({ serves: addressOf(host, port) })
    : firstScreen(host, port, {
        hasPage: server.hasPage,
        isMisconfigured: server.isMisconfigured,
        hasAppSecret: server.hasAppSecret,
        devVars: shownDevVars,
      }),
);
// The first requests go before.
await new Promise((resolve) => setTimeout(resolve, 1000));
await server.verify();
sources.tell(() => server.rebuild());

/** Asked first, since whoever holds the port might answer in our name. Undefined where it can be listened on. */
function probe(): Promise<string | undefined> {
  // A page that asks again and again until we serve would keep the probe open.
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve) => {
    server.once("error", ({ code = "unknown" }: NodeJS.ErrnoException) => resolve(code));
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
}

function portIsTaken(): string {
  return `Port ${port} is taken. Choose another: ${command} --port ${nextPort()}`;
}

/** Mostly this very start, a second time: then the port is taken too. */
function stateIsServed(process: number): string {
  const other = `--port ${probed === undefined ? port : nextPort()} --state ${folder}-2`;
  return `Process ${process} serves the state in ${folder}. To serve another: ${command} ${other}`;
}

function nextPort(): number {
  return port === 65_535 ? 8787 : port + 1;
}

/** What was written of them, in a sentence. */
function ensureOwnSettings(): string | undefined {
  try {
    // What is in an app's folder would be committed with it.
    if (isPackage) writeFileSync(join(state, ".gitignore"), "*\n");
    if (ensureDevVars(devVars)) return `Wrote ${shownDevVars} with random secrets.`;
    const added = addMissingSecrets(devVars);
    return added.length > 0 ? `Added random secrets to ${shownDevVars}: ${added.join(", ")}.` : undefined;
  } catch (error) {
    return fail(`${shownDevVars} cannot be written: ${(error as NodeJS.ErrnoException).code}`);
  }
}

function fail(message: string, code = 1): never {
  console.error(message);
  process.exit(code);
}
