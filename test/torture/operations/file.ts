// What the embedded platform makes is kept in R2 and read from there: the one use of the bucket so far.
import { testSettings } from "../../support/settings.ts";
import type { Turn } from "../clients.ts";

const headers = { Authorization: `Bearer ${testSettings.PLATFORM_API_KEY}` };

export async function file({ n, fate: { user }, clients }: Turn): Promise<void> {
  clients.count("file");
  const body = JSON.stringify({ input: { prompt: `file ${n}` } });
  const answer = await clients.ask(user, "POST", "/platform/v2/chatterbox-turbo/runsync?wait=3000", { body, headers });
  const { audio_url: link } = (answer?.body["output"] ?? {}) as { audio_url?: string };
  if (link === undefined) return;
  clients.count("file read");
  await clients.ask(user, "GET", new URL(link).pathname, { mayBreak: true });
}
