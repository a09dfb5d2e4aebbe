// `npm run doctor`: what is wrong with a deployment, before it is made, or after it at its address; and what to do about it.
import { parseArgs } from "node:util";
import { checkAccount } from "./doctor-account.ts";
import { checkDeployment } from "./doctor-deployment.ts";
import { isHealthy, writeTable } from "./findings.ts";
import { readWrangler, root } from "./wrangler.ts";

const help = `npm run doctor                    before a deployment: login, account, R2, secrets, settings
npm run doctor -- URL [options]   after it: everything that a user needs, at that address

  --origin <origin>  a page that is to call (the first of ALLOWED_ORIGINS)
  --model <model>    makes the pictures that are asked for (the cheapest one)
  --paid             60 submits against a limit of 50, too: pays for 50 pictures at most
  --help             print this

The environment may carry ADMIN_TOKEN, APP_SECRET and UPSTREAM_API_KEY, or TOKEN, a user's own in place of APP_SECRET;
--admin-token, --app-secret and --token give them as well. None of them is printed. What cannot be looked at without
them is said. Two pictures are made, and paid for where the model service is a real one.
`;

const options = {
  "admin-token": { type: "string" },
  "app-secret": { type: "string" },
  token: { type: "string" },
  origin: { type: "string" },
  model: { type: "string" },
  paid: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

const { values, positionals } = read(process.argv.slice(2));
if (values.help) {
  process.stdout.write(help);
  process.exit();
}
const [url, ...more] = positionals;
if (more.length > 0 || (url !== undefined && !/^https?:\/\/[^/?#]+\/?$/.test(url))) {
  refuse("It takes one URL: the address of the deployment, such as https://sluice.example.workers.dev");
}
const { env } = process;
const findings = url
  ? await checkDeployment({
      url: url.replace(/\/$/, ""),
      adminToken: values["admin-token"] ?? env["ADMIN_TOKEN"],
      appSecret: values["app-secret"] ?? env["APP_SECRET"],
      token: values.token ?? env["TOKEN"],
      upstreamKeys: (env["UPSTREAM_API_KEY"] ?? "").split(","),
      origin: values.origin,
      model: values.model,
      paid: values.paid,
    })
  : await checkAccount({ read: readWrangler, folder: root, env });
console.log(writeTable(findings));
process.exitCode = isHealthy(findings) ? 0 : 1;

function read(args: string[]) {
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    return refuse((error as Error).message);
  }
}

function refuse(message: string): never {
  console.error(`${message}\n\n${help}`);
  process.exit(2);
}
