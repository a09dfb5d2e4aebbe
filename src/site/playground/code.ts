// The same call as code to copy: by the client, React, fetch, OpenAI's SDK where the model has its routes, and curl.
import type { ListedModel } from "../../client/index.ts";
import type { Snippet } from "../tabs.tsx";

type Input = Readonly<Record<string, unknown>>;

export function snippetsOf(model: ListedModel, input: Input, origin: string): Snippet[] {
  const given = withoutFiles(input);
  const text = JSON.stringify(given, null, 2);
  const hasOpenAi = model.openAiRoutes.length > 0;
  return [
    { name: "Client", code: client(model, text, origin) },
    { name: "React", code: react(model, text, origin) },
    { name: "fetch", code: byFetch(model, text, origin) },
    ...(hasOpenAi ? [{ name: "OpenAI", code: openAi(model, given, origin) }] : []),
    { name: "curl", code: curl(model, given, origin) },
  ];
}

/** A file that was never uploaded is too long to show. */
function withoutFiles(input: Input): Input {
  const shorten = (_: string, value: unknown) =>
    typeof value === "string" && value.startsWith("data:") ? "https://… the link of your file" : value;
  return JSON.parse(JSON.stringify(input, shorten));
}

const resultOf = ({ output }: ListedModel) => (output === "text" ? "job.output" : `job.output.${output}`);

function client(model: ListedModel, text: string, origin: string): string {
  return `import { createSluice } from "sluice/client";

const sluice = createSluice({ url: "${origin}" });
const job = await sluice.run("${model.id}", ${text});
console.log(${resultOf(model)}, job.cost);`;
}

function react(model: ListedModel, text: string, origin: string): string {
  const tag = { image_url: 'img alt=""', video_url: "video controls", audio_url: "audio controls", text: "" }[
    model.output
  ];
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

function byFetch(model: ListedModel, text: string, origin: string): string {
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

function openAi(model: ListedModel, input: Input, origin: string): string {
  const {
    prompt,
    messages = [{ role: "user", content: prompt ?? "" }],
    max_tokens,
    temperature,
    sampling_params,
  } = input;
  const asked = { model: model.id, messages, max_tokens, temperature, ...(sampling_params as object), stream: true };
  return `import OpenAI from "openai";

const openai = new OpenAI({
  baseURL: "${origin}/v2/${model.id}/openai/v1",
  apiKey: token, // from POST /sessions, or from your backend
});
const stream = await openai.chat.completions.create(${JSON.stringify(asked, null, 2)});
for await (const chunk of stream) console.log(chunk.choices[0]?.delta.content);`;
}

function curl(model: ListedModel, input: Input, origin: string): string {
  const body = JSON.stringify({ input }).replaceAll("'", "'\\''");
  return `TOKEN=$(curl -s -X POST ${origin}/sessions | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')
curl -s ${origin}/v2/${model.id}/runsync \\
  -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
  -d '${body}'`;
}
