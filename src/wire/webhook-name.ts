// The name of the member that tells where a job's end is told, in any case: some services do not look at it.

/** "\u212a", the sign of Kelvin, is a `k` to those as well. */
export function isWebhookName(name: string): boolean {
  return name.toLowerCase() === "webhook";
}
