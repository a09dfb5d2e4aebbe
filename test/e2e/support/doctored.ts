// What the doctor is shown: a proxy before a gateway that plants one fault, and a model service with a mood.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { checkDeployment } from "../../../src/cli/doctor-deployment.ts";
import type { Finding } from "../../../src/cli/findings.ts";
import { listenLocally } from "../../support/serve-locally.ts";
import { testSettings } from "../../support/settings.ts";

export type Plant = (request: IncomingMessage, answer: Response) => Response | Promise<Response>;

/** The doctor before a proxy that hands on whatever the plant makes of an answer. */
export async function doctoredThrough(url: string, plant: Plant, more: More = {}): Promise<Doctored> {
  const server = createServer((request, response) => {
    relay(url, plant, request, response).catch(() => response.destroy());
  });
  // On a busy machine a call may take a connection that is being closed for its idleness: here none is, and none is kept below.
  server.keepAliveTimeout = 0;
  const address = await listenLocally(server);
  try {
    return await doctored(address, more);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function relay(url: string, plant: Plant, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  const { host: _, connection: __, "content-length": ___, ...headers } = request.headers;
  const init: RequestInit = {
    method: request.method ?? "GET",
    headers: { ...(headers as Record<string, string>), connection: "close" },
  };
  if (pieces.length > 0) init.body = Buffer.concat(pieces);
  const answer = await plant(request, await fetch(url + request.url, init));
  response.writeHead(answer.status, Object.fromEntries(withoutLength(answer.headers)));
  for await (const piece of answer.body ?? []) response.write(piece);
  response.end();
}

/** fetch has decoded the body, and a plant may have changed it. */
function withoutLength(headers: Headers): [string, string][] {
  return [...headers].filter(([name]) => !["content-length", "content-encoding", "transfer-encoding"].includes(name));
}

export interface Doctored {
  readonly findings: readonly Finding[];
  /** What the finding says, by its name. */
  of(what: string): Finding | undefined;
  /** What is wrong, by its names. */
  readonly faults: readonly string[];
}

const known = {
  adminToken: testSettings.ADMIN_TOKEN,
  appSecret: testSettings.APP_SECRET,
  token: undefined,
  upstreamKeys: [],
  origin: undefined,
  model: undefined,
  paid: false,
};

export type More = Partial<Parameters<typeof checkDeployment>[0]>;

export async function doctored(url: string, more: More = {}): Promise<Doctored> {
  const findings = await checkDeployment({ ...known, url, ...more });
  return {
    findings,
    of: (what) => findings.find((finding) => finding.what === what),
    faults: findings.filter(({ is }) => is === "fault").map(({ what }) => what),
  };
}

/** A model service whose every answer has one status, or that is not there. */
export async function moodyService() {
  let status = 200;
  const server = createServer((_, response) => {
    response.writeHead(status, { "Content-Type": "application/json" });
    response.end(JSON.stringify(status === 200 ? { jobs: {}, workers: {} } : { error: "no" }));
  });
  const url = await listenLocally(server);
  return {
    url,
    answersWith: (wanted: number) => {
      status = wanted;
    },
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
