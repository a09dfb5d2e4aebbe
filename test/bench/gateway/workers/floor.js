// The least that a gateway with a meter can do: the passthrough, and as many calls of an object that writes one row each.
import { DurableObject } from "cloudflare:workers";

export class Ledger extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, at INTEGER, model TEXT)");
  }

  write(model) {
    this.ctx.storage.sql.exec("INSERT INTO entries (at, model) VALUES (?, ?)", Date.now(), model);
    return true;
  }
}

export default {
  async fetch(request, env, ctx) {
    const { pathname, search } = new URL(request.url);
    const ledger = env.LEDGER.getByName(request.headers.get("authorization").slice(-32));
    await ledger.write(pathname);
    const response = await fetch(env.UPSTREAM + pathname + search, request);
    ctx.waitUntil(ledger.write(pathname));
    return response;
  },
};
