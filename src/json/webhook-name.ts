// Recognizes the member `webhook` in upper or lower case: some services ignore the case of names.

/** "\u212a", the sign of Kelvin, is a `k` to those as well. */
export function isWebhookName(name: string): boolean {
  return name.toLowerCase() === "webhook";
}
