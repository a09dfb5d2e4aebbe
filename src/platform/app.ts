// The platform's routes: the job interface, the worker protocol, the management interface, the files of samples.
import { Hono } from "hono";
import type { Operation } from "../contract/operation.ts";
import type { AppEnv } from "../wire/exchange.ts";
import { authenticate } from "./auth.ts";
import { type EndpointEnv, endpoint } from "./endpoints.ts";
import { jobOperations, jobs } from "./jobs.ts";
import { management, managementOperations } from "./management/management.ts";
import { media, mediaOperations } from "./media.ts";
import { openai, openaiErrors, openaiOperations } from "./openai.ts";
import { workerOperations, workerProtocol } from "./workers/protocol.ts";

const v2 = new Hono<EndpointEnv>();
v2.use("/:endpoint/openai/*", openaiErrors);
v2.use("/:endpoint/*", authenticate, endpoint);
v2.route("/:endpoint", jobs);
v2.route("/:endpoint", workerProtocol);
v2.route("/:endpoint", openai);

export const platform = new Hono<AppEnv>();
platform.route("/", media);
platform.route("/v2", v2);
platform.route("/v1", management);

export const platformOperations: readonly Operation[] = [
  ...jobOperations,
  ...openaiOperations,
  ...workerOperations,
  ...mediaOperations,
  ...managementOperations,
];
