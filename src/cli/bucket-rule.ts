// The bucket's lifecycle rule: files of uploads that nobody removed are gone a day after the longest link.
import { readWorkerConfig } from "./worker-config.ts";
import { readWrangler } from "./wrangler.ts";

const rule = { name: "sluice-uploads", prefix: "uploads/", days: "8" } as const;

/** As wrangler calls the one that it creates; undefined where the deployment has none, and takes no uploads. */
function bucketName(): string | undefined {
  const { name, r2_buckets } = readWorkerConfig();
  const bucket = r2_buckets.find(({ binding }) => binding === "MEDIA");
  return bucket && (bucket.bucket_name ?? `${name}-media`);
}

/** Whether it is set. A rule of this name that is there stays as the operator left it. */
export async function setBucketRule(): Promise<boolean> {
  const bucket = bucketName();
  if (bucket === undefined) return true;
  const lifecycle = (...args: string[]) => readWrangler(["r2", "bucket", "lifecycle", ...args]);
  const listed = await lifecycle("list", bucket);
  if (listed.status === 0 && listed.stdout.includes(rule.name)) return true;
  const adding = ["add", bucket, rule.name, rule.prefix, "--expire-days", rule.days, "--force"];
  const added = listed.status === 0 ? await lifecycle(...adding) : listed;
  if (added.status === 0) {
    console.log(`The bucket ${bucket} removes files under ${rule.prefix} after ${rule.days} days.`);
    return true;
  }
  console.error(`${added.output}\nThe bucket's lifecycle rule is not set. Set it by hand:`);
  console.error(`  npx wrangler r2 bucket lifecycle ${adding.join(" ")}`);
  return false;
}

if (import.meta.main) process.exit((await setBucketRule()) ? 0 : 1);
