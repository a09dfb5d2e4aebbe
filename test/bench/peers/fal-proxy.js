// The proxy of @fal-ai/server-proxy as its users mount it, allowed to call one host of this machine: `node fal-proxy.js <port> <host>`.
import { createRouteHandler } from "@fal-ai/server-proxy/hono";
import { serve } from "@hono/node-server";
import { Hono } from "hono";

const [, , port, host] = process.argv;
const app = new Hono();
app.all(
  "/api/fal/proxy",
  createRouteHandler({
    allowedUrlPatterns: [`${host}/**`],
    allowUnauthorizedRequests: false,
    isAuthenticated: async (behavior) => Boolean(behavior.getHeader("authorization")),
    resolveFalAuth: async () => "Bearer key-of-the-upstream-0123456789abcdef",
  }),
);
serve({ fetch: app.fetch, port: Number(port), hostname: "127.0.0.1" });
