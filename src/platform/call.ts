// One request as the platform's guards and handlers have it.
import { ownOrigin } from "../config.ts";
import { type CallEnv, HttpCall } from "../http/call.ts";

export class PlatformCall extends HttpCall {
  /** Who calls: there behind `authenticate`. */
  account!: string;

  /** Where the platform was called: links to its own files are made with it. */
  get origin(): string {
    return ownOrigin(this.config, this.request.url);
  }
}

export type PlatformEnv = CallEnv<PlatformCall>;
