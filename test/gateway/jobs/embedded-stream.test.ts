// A long stream of the embedded platform's, through the gateway in the same isolate.
import { afterEach, expect, it } from "vitest";
import { emptyStorage } from "../../support/empty-storage.ts";
import { Studio } from "../media/studio.ts";

afterEach(emptyStorage);

it("comes whole, beyond what is looked at before it leaves", async () => {
  const studio = new Studio({ UPSTREAM_URL: "" });
  const content = `😀\n"`.repeat(4000);
  const body = { model: "gpt-oss-120b", messages: [{ role: "user", content }], stream: true, max_tokens: 20_000 };
  const path = "/v2/gpt-oss-120b/openai/v1/chat/completions";
  const response = await studio.ask(path, await studio.token("ada"), "POST", { body });
  const text = await response.text();
  expect(text.length).toBeGreaterThan(16 * 1024);
  expect(text).toMatch(/"usage":.*\n\ndata: \[DONE\]\n\n$/);
});
