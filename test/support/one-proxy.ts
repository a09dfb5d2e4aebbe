// The pool puts a new proxy around the prototype of a Durable Object's class at every construction, so after a few
// thousand objects a call takes milliseconds and then never ends (cloudflare/workers-sdk#15092). Here it keeps the first.
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";

const bases: unknown[] = [DurableObject, WorkerEntrypoint];
const prototypes = new WeakMap<object, unknown>();
const { construct } = Reflect;

function constructByFirst(target: NewableFunction, args: unknown[], newTarget: NewableFunction = target): unknown {
  if (bases.includes(target) && newTarget !== target) {
    if (!prototypes.has(newTarget)) prototypes.set(newTarget, newTarget.prototype);
    newTarget.prototype = prototypes.get(newTarget);
  }
  return construct(target, args, newTarget);
}
Object.assign(Reflect, { construct: constructByFirst });
