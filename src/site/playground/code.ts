// The same call as code to copy: by the client, React, fetch, OpenAI's SDK where the model has its routes, and curl.
import type { ListedModel } from "../../client/index.ts";
import type { Snippet } from "../tabs.tsx";

interface Call {
  readonly model: ListedModel;
  readonly input: Readonly<Record<string, unknown>>;
  /** The same, as it is written in code. */
  readonly text: string;
  readonly origin: string;
}

export function snippetsOf(model: ListedModel, given: Call["input"], origin: string): Snippet[] {
  /** A file that was never uploaded is too long to show. */
  const shorten = (_: string, value: unknown) =>
    typeof value === "string" && value.startsWith("data:") ? "https://… the link of your file" : value;
  const text = JSON.stringify(given, shorten, 2);
  const call = { model, input: JSON.parse(text), text, origin };
  const openAiToo = model.openAiRoutes.length > 0 ? { OpenAI: openAi } : {};
  const writers = { Client: client, React: react, fetch: byFetch, ...openAiToo, curl };
  return Object.entries(writers).map(([name, write]) => ({ name, code: write(call) }));
}

const resultOf = ({ output }: ListedModel) => (output === "text" ? "job.output" : `job.output.${output}`);

function client({ model, text, origin }: Call): string {
  return `import { createSluice } from "sluice/client";

const sluice = createSluice({ url: "${origin}" });
const job = await sluice.run("${model.id}", ${text});
console.log(${resultOf(model)}, job.cost);`;
}

const tags = { image_url: 'img alt=""', video_url: "video controls", audio_url: "audio controls", text: "" };

function react({ model, text, origin }: Call): string {
  const tag = tags[model.output];
  const shown = tag ? `{job && <${tag} src={${resultOf(model)}} />}` : "<pre>{JSON.stringify(job?.output)}</pre>";
  return `import { createSluice } from "sluice/client";
import { useJob } from "sluice/react";

const sluice = createSluice({ url: "${origin}" });
const input = ${text};

export function Example() {
  const { run, cancel, state, job, error } = useJob(sluice, "${model.id}");
  return (
    <>
      <button onClick={() => run(input)}>Run</button>
      <button onClick={cancel}>Cancel</button>
      <p>{error?.message ?? state}</p>
      ${shown}
    </>
  );
}`;
}

function byFetch({ model, text, origin }: Call): string {
  return `const gateway = "${origin}";
const session = await fetch(\`\${gateway}/sessions\`, { method: "POST" });
const { token } = await session.json();

const headers = { Authorization: \`Bearer \${token}\`, "Content-Type": "application/json" };
const body = JSON.stringify({
  input: ${text.replaceAll("\n", "\n  ")},
});
const path = \`\${gateway}/v2/${model.id}\`;
let job = await (await fetch(\`\${path}/runsync\`, { method: "POST", headers, body })).json();
while (job.status?.startsWith("IN_")) {
  job = await (await fetch(\`\${path}/status-sync/\${job.id}\`, { headers })).json();
}
console.log(${resultOf(model)});`;
}

function openAi({ model, input, origin }: Call): string {
  const { prompt = "", messages = [{ role: "user", content: prompt }], max_tokens, temperature } = input;
  const sampling = input["sampling_params"] as object;
  const asked = { model: model.id, messages, max_tokens, temperature, ...sampling, stream: true };
  return `import OpenAI from "openai";

const openai = new OpenAI({
  baseURL: "${origin}/v2/${model.id}/openai/v1",
  apiKey: token, // from POST /sessions, or from your backend
});
const stream = await openai.chat.completions.create(${JSON.stringify(asked, null, 2)});
for await (const chunk of stream) console.log(chunk.choices[0]?.delta.content);`;
}

function curl({ model, input, origin }: Call): string {
  const body = JSON.stringify({ input }).replaceAll("'", "'\\''");
  return `TOKEN=$(curl -s -X POST ${origin}/sessions | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')
curl -s ${origin}/v2/${model.id}/runsync \\
  -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
  -d '${body}'`;
}
