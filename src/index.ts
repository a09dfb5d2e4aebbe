// The Worker's entry: the app and the Durable Object classes. No logic.
import { app } from "./app.ts";

export { JobMedia } from "./gateway/media/job-media.ts";
export { SharedRequest } from "./gateway/media/shared-request.ts";
export { Control } from "./gateway/operator-settings/control.ts";
export { Budget } from "./gateway/quota/budget.ts";
export { EndpointQueue } from "./platform/endpoint-queue.ts";
export { Account } from "./platform/management/account.ts";
export { UserMeter } from "./upstream-choice.ts";

export default app;
