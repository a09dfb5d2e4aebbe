// Where an upload's file lies in the bucket. The lifecycle rule that `npm run deploy` sets counts on the prefix.

export const uploadPrefix = "uploads/";

export function uploadFile(key: string): string {
  return uploadPrefix + key;
}
