// What a payer's meter is made of, and which part knows which.
import { remote } from "../../durable/remote.ts";
import type { Send } from "../../http/webhook.ts";
import { Admissions } from "./admissions.ts";
import { AskedAdmissions } from "./asked-admissions.ts";
import { Bindings } from "./bindings.ts";
import { type Budget, budgetName } from "./budget.ts";
import { BudgetSlices } from "./budget-slices.ts";
import { Endings } from "./endings.ts";
import { Errands } from "./errands.ts";
import { MeterAlarm } from "./meter-alarm.ts";
import { MeterStores } from "./meter-stores.ts";
import { Network, type NetworkCalls } from "./network.ts";
import { OpenJobs } from "./open-jobs.ts";
import type { Released } from "./released.ts";
import { UploadAdmissions } from "./upload-admissions.ts";
import type { AskUpstream, DescribeEnd } from "./upstream-poll.ts";

/** What lies outside the meter. Tests and upstream-choice.ts set their own, so each is read when it is called. */
export interface MeterDeps {
  readonly clock: () => number;
  readonly ask: AskUpstream;
  readonly describeEnd: DescribeEnd;
  readonly send: Send;
}

export function partsOf(ctx: DurableObjectState, env: Env, released: Released, deps: MeterDeps) {
  const { clock } = deps;
  const stores = new MeterStores(ctx.storage, clock);
  const bindings = new Bindings(stores);
  const endings = new Endings(stores, bindings);
  const openJobs = new OpenJobs(stores);
  const admissions = new Admissions(stores);
  const network = new Network(env.USER_METER as unknown as DurableObjectNamespace<NetworkCalls>);
  const slices = new BudgetSlices(ctx.id.toString(), stores, () => remote<Budget>(env.BUDGET, budgetName));
  const uploads = new UploadAdmissions({ stores, admissions, network, released, clock });
  const errands = new Errands(env, { stores, endings, openJobs, network, ...deps });
  const alarm = new MeterAlarm(ctx, { stores, openJobs, errands, slices, uploads, clock });
  const arm = () => alarm.arm();
  const asking = new AskedAdmissions({ stores, admissions, openJobs, slices, released, network, clock, arm });
  return { stores, bindings, endings, openJobs, admissions, asking, uploads, alarm };
}
