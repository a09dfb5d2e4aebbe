// What a deployment ends with: its address, with a token of an hour for whoever deployed it.
import { readFileSync } from "node:fs";

const tries = { count: 15, pauseMs: 2000 };

/** Where wrangler says that it deployed to, in the file that it was told to write. */
export function deployedTo(outputFile: string): string | undefined {
  const lines = readFileSync(outputFile, "utf8").split("\n").filter(Boolean);
  const deployed = lines.map((line) => JSON.parse(line)).find(({ type }) => type === "deploy");
  return deployed?.targets?.find((target: string) => target.startsWith("https://"));
}

/** The page takes the token from the address and removes it there. Undefined where the gateway gives none. */
export async function pageWithToken(
  address: string,
  appSecret: string,
  pauseMs = tries.pauseMs,
): Promise<string | undefined> {
  const asked = { method: "POST", headers: { Authorization: `Bearer ${appSecret}` }, body: '{"user":"deployer"}' };
  // A new address is known everywhere only after some seconds.
  for (let tried = 0; tried < tries.count; tried++) {
    const answer = await fetch(`${address}/tokens`, asked).catch(() => undefined);
    if (answer?.ok) return `${address}/#token=${((await answer.json()) as { token: string }).token}`;
    if (answer?.status === 401) return undefined;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return undefined;
}
