// The queue of an endpoint with its built-in workers: the object that the runtime makes.
import { EndpointQueue as Queue } from "./queue/endpoint-queue.ts";
import { publicModel } from "./workers/built-in.ts";

export class EndpointQueue extends Queue {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env, publicModel);
  }
}
