// `npm run deploy`: makes the first deployment and every later one.
import { setBucketRule } from "./bucket-rule.ts";
import { deploy, Stopped } from "./deployment.ts";
import { pageWithToken } from "./first-token.ts";
import { endWhenInterrupted } from "./interruption.ts";
import { openTerminal } from "./terminal.ts";
import { readWrangler, root, wrangler } from "./wrangler.ts";

const told = process.argv.slice(2);
const unknown = told.filter((option) => !["--dry-run", "--no-pages", "--no-uploads"].includes(option));
if (unknown.length > 0) {
  console.error(
    `There is no option ${unknown.join(", ")}. npm run deploy takes --dry-run, --no-pages and --no-uploads.`,
  );
  process.exit(2);
}
// The build that wrangler starts leaves them out: the API alone is deployed.
if (told.includes("--no-pages")) process.env["SLUICE_PAGES"] = "none";
endWhenInterrupted();

try {
  const isDone = await deploy(
    {
      folder: root,
      terminal: openTerminal(),
      env: process.env,
      read: readWrangler,
      run: (args) => new Promise((resolve) => wrangler([...args]).on("exit", (code) => resolve(code ?? 1))),
      say: (text) => console.log(text),
      setBucketRule,
      pageWithToken,
    },
    { dryRun: told.includes("--dry-run"), uploads: !told.includes("--no-uploads") },
  );
  process.exitCode = isDone ? 0 : 1;
} catch (error) {
  if (!(error instanceof Stopped)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
