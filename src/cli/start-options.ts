// What `npm start` may be told.
import { parseArgs } from "node:util";
import { builtInPlanNames } from "../settings.ts";
import { command, usualState } from "./place.ts";

export const help = `${command} [options]

  --port <number>   the port to serve at (8787)
  --host <address>  the address to listen on (127.0.0.1); 0.0.0.0 serves your network too
  --plan <name>     the plan of sessions (developer); anonymous has the limits of production
  --json            print the log as JSON lines, as it is where there is no terminal
  --state <folder>  where objects, KV, R2 and the cache are kept (${usualState})
  --help            print this
`;

export interface StartOptions {
  readonly port: number;
  readonly host: string;
  readonly plan: string | undefined;
  readonly json: boolean;
  readonly state: string;
  readonly help: boolean;
}

/** The options, or one sentence on what is wrong with them. */
export function readOptions(args: readonly string[]): StartOptions | string {
  let values: ReturnType<typeof parse>;
  try {
    values = parse(args);
  } catch (error) {
    return sayFault(error as Error & { code?: string });
  }
  const port = Number(values.port);
  if (!/^\d{1,5}$/.test(values.port) || port < 1 || port > 65_535) {
    return `--port takes a number from 1 to 65535, not ${values.port}`;
  }
  const { host, plan, json, state } = values;
  for (const [name, value] of Object.entries({ host, plan, state })) {
    if (value === "") return `--${name} takes a value. ${command} --help explains it.`;
  }
  if (plan !== undefined && !builtInPlanNames.some((name) => name === plan)) {
    return `--plan takes ${builtInPlanNames.join(", ")}, not ${plan}`;
  }
  return { port, host, plan, json, state, help: values.help };
}

function parse(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      port: { type: "string", default: "8787" },
      host: { type: "string", default: "127.0.0.1" },
      plan: { type: "string" },
      json: { type: "boolean", default: false },
      state: { type: "string", default: usualState },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  return values;
}

function sayFault({ code, message }: Error & { code?: string }): string {
  const [, named = ""] = /'(-[^' ]*|[^']*)/.exec(message) ?? [];
  const hint = `${command} --help lists the options.`;
  if (code === "ERR_PARSE_ARGS_UNKNOWN_OPTION") return `There is no option ${named}. ${hint}`;
  if (code === "ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL") return `${named} is no option. ${hint}`;
  return `${/--\w+/.exec(message)?.[0] ?? named} is not used like this. ${hint}`;
}
