// The Worker's entry: the app and the Durable Object classes. No logic.
import { app } from "./app.ts";

export { Control } from "./gateway/control/control.ts";
export { JobMedia } from "./gateway/images/job-media.ts";
export { SharedRequest } from "./gateway/images/shared-request.ts";
export { Budget } from "./gateway/quota/budget.ts";
export { EndpointQueue } from "./platform/endpoint-queue.ts";
export { Account } from "./platform/management/account.ts";
export { UserMeter } from "./upstream-choice.ts";

export default app;
