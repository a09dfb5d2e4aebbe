// The Worker's entry: the app and the Durable Object classes. No logic.
import { app } from "./app.ts";

export { Control } from "./gateway/control/control.ts";
export { Account } from "./platform/management/account.ts";
export { EndpointQueue } from "./platform/queue/endpoint-queue.ts";

export default app;
