// What is said of a body that could not be read, or is not what it should be.
import { Problem } from "../errors.ts";
import type { BodyFault } from "./body.ts";
import type { JsonFault } from "./json-scanner.ts";

export function bodyProblem(fault: BodyFault | JsonFault, limitBytes: number): Problem {
  switch (fault) {
    case "too-large":
      return new Problem("PAYLOAD_TOO_LARGE", `The body is larger than ${limitBytes} bytes.`);
    case "source-gone":
      return new Problem("INVALID_REQUEST", "body: broke off");
    case "not-json":
      return new Problem("INVALID_JSON", "body: is not valid JSON");
    case "too-deep":
      return new Problem("INVALID_JSON", "body: is nested too deep");
  }
}
