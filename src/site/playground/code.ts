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

const written = 'job.output.flatMap(({ choices }) => choices[0].tokens).join("")';
const resultOf = ({ output }: ListedModel) => (output === "text" ? written : `job.output.${output}`);

const madeBy = "the package that `npm pack` makes in a checkout of Sluice";

function client({ model, text, origin }: Call): string {
  return `// From ${madeBy}.
// A page without a bundler imports "${origin}/client.js".
import { createSluice } from "sluice/client";

const sluice = createSluice({ url: "${origin}" });
const job = await sluice.run("${model.id}", ${text});
console.log(${resultOf(model)}, job.cost);`;
}

const tags = { image_url: 'img alt=""', video_url: "video controls", audio_url: "audio controls", text: "" };

function react({ model, text, origin }: Call): string {
  const tag = tags[model.output];
  const result = resultOf(model);
  const shown = tag ? `<${tag} src={${result}} />` : `<pre>{${result}}</pre>`;
  return `// Both from ${madeBy}.
import { createSluice } from "sluice/client";
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
      {job && ${shown}}
    </>
  );
}`;
}

function byFetch({ model, text, origin }: Call): string {
  return `const gateway = "${origin}";

async function call(path, request) {
  const response = await fetch(gateway + path, request);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.detail);
  return answer;
}

const { token } = await call("/sessions", { method: "POST" });
const headers = { Authorization: \`Bearer \${token}\`, "Content-Type": "application/json" };
const body = JSON.stringify({
  input: ${text.replaceAll("\n", "\n  ")},
});
const path = "/v2/${model.id}";
let job = await call(\`\${path}/runsync\`, { method: "POST", headers, body });
while (job.status.startsWith("IN_")) job = await call(\`\${path}/status-sync/\${job.id}\`, { headers });
if (job.status !== "COMPLETED") throw new Error(job.error ?? job.status);
console.log(${resultOf(model)});`;
}

function openAi({ model, input, origin }: Call): string {
  const { prompt = "", messages = [{ role: "user", content: prompt }], max_tokens, temperature } = input;
  const sampling = input["sampling_params"] as object;
  const asked = { model: model.id, messages, max_tokens, temperature, ...sampling, stream: true };
  return `import OpenAI from "openai";

// Of a visitor; your backend may mint one for a user.
const session = await fetch("${origin}/sessions", { method: "POST" });
const { token, detail } = await session.json();
if (!session.ok) throw new Error(detail);

const openai = new OpenAI({ baseURL: "${origin}/v2/${model.id}/openai/v1", apiKey: token });
const stream = await openai.chat.completions.create(${JSON.stringify(asked, null, 2)});
let text = "";
for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
console.log(text);`;
}

function curl({ model, input, origin }: Call): string {
  const body = JSON.stringify({ input }).replaceAll("'", "'\\''");
  return `TOKEN=$(curl -s -X POST ${origin}/sessions | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')
curl -s ${origin}/v2/${model.id}/runsync \\
  -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
  -d '${body}'`;
}
