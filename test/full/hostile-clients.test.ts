// The hostile clients and upstreams of test/e2e against `npm start`, three times.
import { describe } from "vitest";

process.env["SERVED_BY"] = "npm start";

for (const round of [1, 2, 3]) {
  // The query makes each round a module of its own, with a server of its own.
  describe(`round ${round}`, async () => {
    for (const name of ["leaving-clients", "gateway-hostile"]) {
      await import(/* @vite-ignore */ `../e2e/${name}.test.ts?round=${round}`);
    }
  });
}
