// The bucket that uploads lie in. A deployment may have none.
import { Problem } from "../../errors.ts";
import type { Call } from "../call.ts";

export function findBucket(env: Partial<Pick<Env, "MEDIA">>): R2Bucket | undefined {
  return env.MEDIA;
}

export function bucketOf({ env }: Pick<Call, "env">): R2Bucket {
  const bucket = findBucket(env);
  if (bucket) return bucket;
  throw new Problem("NOT_IMPLEMENTED", "This deployment takes no uploads: it has no R2 bucket, bound as MEDIA.");
}

export function bucketAway(): Problem {
  return new Problem("UNAVAILABLE", "Uploads cannot be reached at the moment.", { "Retry-After": "1" });
}
