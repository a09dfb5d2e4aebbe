// purge-queue and requests: a user's own jobs, and everybody's for the operator.
import { describe, expect, it } from "vitest";
import { expectProblem } from "../../support/problems.ts";
import { testSettings } from "../../support/settings.ts";
import { FakeUpstream, json, model, watchCanary } from "./fake-upstream.ts";

watchCanary();

const refOf = (path: string) => path.split("/").at(-1) ?? "";

describe("purging and listing", () => {
  async function withJobs(count: number): Promise<FakeUpstream> {
    let made = 0;
    const upstream = new FakeUpstream(({ path }) => {
      const [, , , operation, ref = ""] = path.split("/");
      if (operation === "run") return json({ id: `job-${++made}`, status: "IN_QUEUE" });
      if (operation === "cancel") return json({ id: ref, status: "CANCELLED" });
      return json({ id: ref, status: ref === "job-2" ? "IN_PROGRESS" : "IN_QUEUE" });
    });
    for (let n = 0; n < count; n++) await upstream.submit();
    upstream.seen.length = 0;
    return upstream;
  }

  it("cancels the caller's own waiting jobs, and says how many", async () => {
    const upstream = await withJobs(3);
    const stranger = await upstream.call("POST", `/v2/${model}/purge-queue`, { key: await upstream.token("eve") });
    expect(await stranger.json()).toEqual({ removed: 0, status: "completed" });
    const answer = await upstream.call("POST", `/v2/${model}/purge-queue`);
    expect(await answer.json()).toEqual({ removed: 2, status: "completed" });
    const cancelled = upstream.seen.filter(({ path }) => path.includes("/cancel/")).map(({ path }) => refOf(path));
    expect(cancelled.sort()).toEqual(["job-1", "job-3"]);
    expect((await upstream.jobs()).map(({ status }) => status)).toEqual(["CANCELLED", "IN_PROGRESS", "CANCELLED"]);
  });

  it("cancels at most fifty a call", async () => {
    const upstream = await withJobs(52);
    const answer = await upstream.call("POST", `/v2/${model}/purge-queue`);
    expect(await answer.json()).toEqual({ removed: 50, status: "completed" });
  });

  it.each(["before", "after"])(
    "fault: jobs that wait are reached also where fifty that run came %s them",
    async (when) => {
      const upstream = await withJobs(53);
      const waits = (ref: string) => (when === "before" ? Number(ref.slice(4)) > 50 : Number(ref.slice(4)) <= 3);
      const { answer } = upstream;
      upstream.answer = (seen, request) => {
        const ref = refOf(seen.path);
        return seen.path.includes("/status/") && !waits(ref)
          ? json({ id: ref, status: "IN_PROGRESS" })
          : answer(seen, request);
      };
      const purge = async () => (await upstream.call("POST", `/v2/${model}/purge-queue`)).json();
      expect(await purge()).toEqual({ removed: when === "before" ? 3 : 2, status: "completed" });
      expect(upstream.seen.filter(({ path }) => path.includes("/cancel/"))).toHaveLength(when === "before" ? 3 : 2);
    },
  );

  it("fault: jobs that wait are reached by a later call where too many run to ask about them all", async () => {
    const upstream = await withJobs(0);
    let made = 0;
    const { answer } = upstream;
    upstream.answer = (seen, request) => {
      const ref = refOf(seen.path);
      if (seen.path.endsWith("/run")) return json({ id: `job-${++made}`, status: "IN_QUEUE" });
      return seen.path.includes("/status/") && ref !== "job-1"
        ? json({ id: ref, status: "IN_PROGRESS" })
        : answer(seen, request);
    };
    for (let n = 0; n < 202; n++) await upstream.submit();
    const purge = async () => (await upstream.call("POST", `/v2/${model}/purge-queue`)).json();
    expect([await purge(), await purge()]).toMatchObject([{ removed: 0 }, { removed: 1 }]);
  });

  it("lists the caller's own jobs, page by page, each as it is now", async () => {
    const upstream = await withJobs(3);
    const page = await upstream.call("GET", `/v2/${model}/requests?offset=1&limit=1`);
    expect(upstream.seen.map(({ path }) => path)).toEqual([`/v2/${model}/status/job-2`]);
    expect(await page.json()).toEqual({
      requests: [{ id: expect.stringMatching(/^job-2\./), status: "IN_PROGRESS", submittedAt: expect.any(String) }],
      total: 3,
      offset: 1,
      limit: 1,
      hasMore: true,
    });
    const empty = await upstream.call("GET", `/v2/${model}/requests`, { key: await upstream.token("eve") });
    expect(await empty.json()).toMatchObject({ requests: [], total: 0 });
    expect(upstream.seen).toHaveLength(1);
    await expectProblem(await upstream.call("GET", `/v2/${model}/requests?limit=1000`), "INVALID_REQUEST");
  });

  it("asks about twenty open jobs of a page at most, about none that has ended, and lists them if nobody answers", async () => {
    const upstream = await withJobs(22);
    const list = async () => {
      const page = await upstream.call("GET", `/v2/${model}/requests`);
      return (await page.json<{ requests: { status: string }[] }>()).requests.map(({ status }) => status);
    };
    upstream.answer = ({ path }) => json({ id: refOf(path), status: "FAILED", error: "no" });
    expect((await list()).filter((status) => status === "FAILED")).toHaveLength(20);
    expect(upstream.seen).toHaveLength(20);
    upstream.answer = () => json({ error: "down" }, 500);
    expect(await list()).toHaveLength(22);
    expect(upstream.seen).toHaveLength(22);
  });

  it("hands the operator on to the upstream, for everybody's", async () => {
    const upstream = new FakeUpstream(({ path }) =>
      json(path.endsWith("requests") ? { requests: [], total: 9 } : { removed: 7 }),
    );
    const key = testSettings.ADMIN_TOKEN;
    expect(await (await upstream.call("GET", `/v2/${model}/requests`, { key })).json()).toMatchObject({ total: 9 });
    expect(await (await upstream.call("POST", `/v2/${model}/purge-queue`, { key })).json()).toEqual({ removed: 7 });
    expect(upstream.seen.map(({ method }) => method)).toEqual(["GET", "POST"]);
  });
});
