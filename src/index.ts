// The Worker's entry: the app and the Durable Object classes. No logic.
import { app } from "./app.ts";

export { Budget } from "./gateway/quota/budget.ts";
export { UserMeter } from "./gateway/quota/user-meter.ts";
export { EndpointQueue } from "./platform/queue/endpoint-queue.ts";
export default app;
