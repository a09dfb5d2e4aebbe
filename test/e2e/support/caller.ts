// A client that judges each answer: JSON, and where it refuses, in the one shape.
import { Agent, request } from "node:http";
import { Readable } from "node:stream";
import { expect } from "vitest";
import { hear } from "../../support/canary.ts";

export interface Answer {
  readonly status: number;
  readonly body: { readonly token?: string; readonly code?: string };
}

export class Caller {
  readonly #url: string;
  #agent = new Agent({ keepAlive: true });

  constructor(url: string) {
    this.#url = url;
  }

  withFreshConnections(): void {
    this.#agent.destroy();
    this.#agent = new Agent({ keepAlive: true });
  }

  async ask(method: string, path: string, token: string, body: string | AsyncIterable<Buffer>): Promise<Answer> {
    const { status, text } = await this.#send(method, path, token, body);
    hear(`a body of ${path}`, text);
    const said = JSON.parse(text);
    if (status >= 400) {
      expect(said).toMatchObject({ status, title: expect.any(String), requestId: expect.any(String) });
      expect(said).toMatchObject({ type: `urn:sluice:error:${said.code}`, error: said.detail });
    }
    return { status, body: said };
  }

  #send(
    method: string,
    path: string,
    token: string,
    body: string | AsyncIterable<Buffer>,
  ): Promise<{ status: number; text: string }> {
    return new Promise((resolve, reject) => {
      const headers = {
        Authorization: `Bearer ${token}`,
        ...(typeof body === "string" && { "Content-Length": Buffer.byteLength(body) }),
      };
      const sent = request(this.#url + path, { method, headers, agent: this.#agent }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (piece) => {
          text += piece;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
        response.on("error", reject);
      });
      sent.on("error", (error) => {
        // The server closed a connection that rested just as it was used again: nothing was asked yet.
        if (sent.reusedSocket && typeof body === "string") resolve(this.#send(method, path, token, body));
        else reject(error);
      });
      if (typeof body === "string") sent.end(body);
      else Readable.from(body).on("error", reject).pipe(sent);
    });
  }
}
