// Stands before the bundle while it is tortured, in the same isolate: its clock is wrong, and calls of its objects are lost,
// for as long as the torture says so. A process that dies forgets it. The classes are added by door.ts.
import * as product from "./index.js";

export * from "./index.js";

/** Where the torture says what is wrong. */
const path = "/torture";
/** `lostEvery` counts the calls of objects; with 0 none is lost. */
const wrong = { clockMs: 0, lostEvery: 0 };

const { now } = Date;
Date.now = () => now() + wrong.clockMs;

let calls = 0;

/** Of what every admission says of its caller nothing is worth a line. */
const untold = new Set(["plans", "bearer", "plan", "planFrom", "quota", "media"]);
const inShort = (value) => JSON.stringify(value, (key, member) => (untold.has(key) ? undefined : member));
const mostCharacters = 300;

/** For the history of a job. */
function tell(what, args, answer) {
  const clock = wrong.clockMs === 0 ? "" : `(clock ${wrong.clockMs}) `;
  const answered = answer === undefined ? "" : ` → ${inShort(answer).slice(0, mostCharacters)}`;
  console.log(`${clock}${what} ${inShort(args).slice(0, mostCharacters)}${answered}`);
}

/** Of the calls that are lost every second one is done all the same. */
async function callObject(call, method, args) {
  calls += 1;
  if (wrong.lostEvery === 0 || calls % wrong.lostEvery !== 0) return call();
  const isDone = (calls / wrong.lostEvery) % 2 === 0;
  tell(`the call of ${method} is lost, ${isDone ? "and done" : "and not done"}`, args);
  if (isDone) await call();
  throw Object.assign(new Error("Network connection lost."), { retryable: true });
}

function wrapStub(stub) {
  return new Proxy(stub, {
    get(target, method) {
      const member = Reflect.get(target, method);
      if (typeof member !== "function" || method === "fetch") return member;
      return (...args) => callObject(() => target[method](...args), String(method), args);
    },
  });
}

function wrapNamespace(namespace) {
  return new Proxy(namespace, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      const wrap = name === "get" || name === "getByName" ? wrapStub : (made) => made;
      return (...args) => wrap(member.apply(target, args));
    },
  });
}

const wrapped = new WeakMap();

/** The same one for the same bindings: the product keeps what it made of them. */
function wrapBindings(env) {
  if (!wrapped.has(env)) {
    const bindings = Object.entries(env).map(([name, binding]) => {
      return [name, typeof binding?.idFromName === "function" ? wrapNamespace(binding) : binding];
    });
    wrapped.set(env, Object.fromEntries(bindings));
  }
  return wrapped.get(env);
}

let areShifted = false;

/** The runtime's clock is right: an alarm rings after as long as the Worker thinks that it does. */
function shiftAlarms(storage) {
  if (areShifted) return;
  areShifted = true;
  const { setAlarm } = storage;
  storage.setAlarm = function (at, options) {
    return setAlarm.call(this, Number(at) - wrong.clockMs, options);
  };
}

/** The calls of a meter that are told, each with what it answered. */
const told = ["admit", "bind", "release", "doubt", "lookAgain", "settle", "notify", "lastWord", "job"];

function tellCalls({ prototype }) {
  for (const method of told) {
    const call = prototype[method];
    prototype[method] = function (...args) {
      const answer = call.apply(this, args);
      Promise.resolve(answer).then(
        (said) => tell(method, args, said),
        () => tell(`${method} failed`, args),
      );
      return answer;
    };
  }
}

function tellQuestions(meter) {
  const { ask } = meter;
  meter.ask = async (job, large) => {
    const answer = await ask.call(meter, job, large);
    tell("asked", job, answer);
    return answer;
  };
}

// biome-ignore lint/correctness/noUnusedVariables: what door.ts adds uses it.
function tortured(Product) {
  if (Product === product.UserMeter) tellCalls(Product);
  return class extends Product {
    constructor(ctx, env) {
      shiftAlarms(Object.getPrototypeOf(ctx.storage));
      super(ctx, wrapBindings(env));
      if (Product === product.UserMeter) tellQuestions(this);
    }
  };
}

export default {
  async fetch(request, env, ctx) {
    if (new URL(request.url).pathname !== path) return product.default.fetch(request, wrapBindings(env), ctx);
    Object.assign(wrong, await request.json());
    return new Response();
  },
};
