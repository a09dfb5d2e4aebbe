// The canary at the app's front door: whatever comes out, whoever called.
import { app } from "../../src/app.ts";
import { describe, hear, overheard } from "./canary.ts";

let listened: typeof app.fetch | undefined;

export function listenToApp(): void {
  const { fetch } = app;
  if (fetch === listened) return;
  app.fetch = async (request, ...rest) => {
    const where = `${request.method} ${new URL(request.url).pathname}`;
    try {
      return overheard(where, await fetch(request, ...rest));
    } catch (error) {
      hear(`an error of ${where}`, describe(error));
      throw error;
    }
  };
  listened = app.fetch;
}
