// The operator's plans where the rooms meet: kept in CONTROL, read by the routes and the meters.
import { askControl, readControlAnew } from "./control/control-reader.ts";
import { operatorsPlans, type PlanKeeper } from "./quota/admin-plans.ts";

export const operatorPlans: PlanKeeper = {
  async all(c) {
    return operatorsPlans(await readControlAnew(c));
  },
  async set(env, name, rules) {
    await askControl(env, (control) => control.setPlan(name, { rules }));
  },
};
