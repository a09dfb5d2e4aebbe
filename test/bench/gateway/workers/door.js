// Stands before the built Worker in its own process, and reaches its objects and stores as it does.
import product from "./index.js";

export * from "./index.js";

const acts = {
  /** One after the other, as the relay admits them. */
  "/bench/admit": async ({ USER_METER }, { payer, request, admissions }) => {
    const meter = USER_METER.getByName(payer);
    for (const admission of admissions) {
      const idempotency = { key: admission, fingerprint: admission };
      const { admitted, detail } = await meter.admit({ ...request, admission, idempotency });
      if (!admitted) throw new Error(detail);
    }
  },
  "/bench/release": async ({ USER_METER }, { payer, admissions }) => {
    const meter = USER_METER.getByName(payer);
    for (const admission of admissions) await meter.release(admission);
  },
  /** What one link leads to, under other keys. */
  "/bench/link": async ({ IMAGES }, { like, keys }) => {
    const entry = await IMAGES.get(`media/${like}`);
    if (entry === null) throw new Error("the cache does not know the link that the others shall be like");
    const expirationTtl = 24 * 60 * 60;
    for (const key of keys) await IMAGES.put(`media/${key}`, entry, { expirationTtl });
  },
};

export default {
  async fetch(request, env, ctx) {
    const act = acts[new URL(request.url).pathname];
    if (!act) return product.fetch(request, env, ctx);
    await act(env, await request.json());
    return new Response();
  },
};
