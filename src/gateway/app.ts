// The gateway's routes, in order, with their guards.
import { Hono } from "hono";
import type { Operation } from "../contract/operation.ts";
import type { AppEnv } from "../wire/exchange.ts";
import { catalog, catalogOperations } from "./catalog.ts";

export const gateway = new Hono<AppEnv>();

gateway.route("/", catalog);

export const gatewayOperations: readonly Operation[] = [...catalogOperations];
