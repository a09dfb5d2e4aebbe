// A Worker in place of ours, with the bindings of wrangler.toml: it writes to each kind of store, and fails where nobody sees it.
import { DurableObject } from "cloudflare:workers";

const word = "first";
const cached = "http://probe.test/cached";

export class Account extends DurableObject {
  async write(text, ringsAt) {
    await this.ctx.storage.put("text", text);
    await this.ctx.storage.setAlarm(ringsAt);
  }

  async read() {
    return { object: await this.ctx.storage.get("text"), rang: await this.ctx.storage.get("rang") };
  }

  async failAtAlarm() {
    await this.ctx.storage.put("fails", true);
    await this.ctx.storage.setAlarm(Date.now());
  }

  async alarm() {
    if (await this.ctx.storage.get("fails")) throw new Error("planted in an alarm");
    await this.ctx.storage.put("rang", true);
  }
}
export class Budget extends DurableObject {}
export class Control extends DurableObject {}
export class EndpointQueue extends DurableObject {}
export class JobMedia extends DurableObject {}
export class SharedRequest extends DurableObject {}
export class UserMeter extends DurableObject {}

async function failLater() {
  await scheduler.wait(10);
  throw new Error("planted after the answer");
}

export default {
  async fetch(request, env, ctx) {
    const { pathname, searchParams } = new URL(request.url);
    // The build of the pages asks for it.
    if (pathname === "/openapi.json") return Response.json({ paths: {}, components: { schemas: {} } });
    const object = env.ACCOUNT.getByName(searchParams.get("object") ?? "probe");
    const text = searchParams.get("text") ?? "";
    if (pathname === "/write") {
      await env.IMAGES.put("text", text);
      await env.MEDIA.put("text", text);
      await caches.default.put(cached, new Response(text, { headers: { "Cache-Control": "max-age=3600" } }));
      await object.write(text, Number(searchParams.get("ringsAt")));
    }
    if (pathname === "/read") {
      return Response.json({
        kv: await env.IMAGES.get("text"),
        r2: await (await env.MEDIA.get("text"))?.text(),
        cache: await (await caches.default.match(cached))?.text(),
        ...(await object.read()),
      });
    }
    if (pathname === "/fail-later") ctx.waitUntil(failLater());
    if (pathname === "/fail-at-alarm") await object.failAtAlarm();
    return Response.json({ word, pathname, plan: env.SESSION_PLAN });
  },
};
