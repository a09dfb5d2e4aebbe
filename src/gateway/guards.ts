// The guards as the routes use them: where identity meets the operator's revocations.
import { readControl } from "./control/control-reader.ts";
import { authenticator, callerIdentifier } from "./identity/authenticate.ts";

export { readControl } from "./control/control-reader.ts";
export { operatorOnly } from "./identity/authenticate.ts";
export { permitted } from "./identity/scope.ts";

export const identifyCaller = callerIdentifier(readControl);
export const authenticate = authenticator(identifyCaller);
