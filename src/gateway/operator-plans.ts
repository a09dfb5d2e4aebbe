// The operator's plans where the rooms meet: kept in CONTROL, read by the routes and the meters.
import { controlReaderOf, controlStub } from "./control/control-reader.ts";
import type { PlanKeeper } from "./quota/admin-plans.ts";

export const operatorPlans: PlanKeeper = {
  async find(env, name) {
    return (await controlStub(env).plan(name))?.rules;
  },
  async set(env, name, rules) {
    await controlStub(env).setPlan(name, { rules });
    controlReaderOf(env).outdate();
  },
};
