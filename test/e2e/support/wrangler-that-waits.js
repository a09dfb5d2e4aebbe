// In place of wrangler: an account without R2 where nothing was deployed, and a deployment that goes on until it is ended.
const { readFileSync } = require("node:fs");

const args = process.argv.slice(2);
const command = args.join(" ");
const end = (status, said) => {
  console.log(said);
  process.exit(status);
};

if (command === "whoami --json") end(0, '{"loggedIn":true,"accounts":[{"id":"account-1","name":"One"}]}');
if (command.startsWith("secret list")) end(1, "If this is a new Worker, run `wrangler deploy` first to create it.");
if (command.startsWith("r2 bucket list")) end(1, "Please enable R2 through the Cloudflare Dashboard. [code: 10042]");

const secrets = JSON.parse(readFileSync(args[args.indexOf("--secrets-file") + 1], "utf8"));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => end(1, "wrangler has ended"));
console.log(`deploying with ${Object.keys(secrets).length} secrets`);
setInterval(() => {}, 1000);
