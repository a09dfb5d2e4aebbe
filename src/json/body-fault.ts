// What can be wrong with a body before anybody looks at what it says.

/** The body is sent too slowly. */
export class TooSlow extends Error {}

/** `too-slow`: its client hardly sends it. `source-gone`: it broke off. */
export type BodyFault = "too-large" | "too-slow" | "source-gone";

/** Of a read that failed. */
export function faultOf(error: unknown): "too-slow" | "source-gone" {
  return error instanceof TooSlow ? "too-slow" : "source-gone";
}
