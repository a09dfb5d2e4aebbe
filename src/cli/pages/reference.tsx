// Every route: what it takes, answers and refuses, and how it is called.
import { raw } from "hono/html";
import { codeBlock } from "./markdown.ts";
import { type OpenApi, type Route, type Schema, schemaOf, shapeOf, tagsOf } from "./openapi.ts";

export function Reference({ openApi }: { readonly openApi: OpenApi }) {
  return (
    <>
      <h1>Every route</h1>
      <p>
        Made from the document that tools read at <a href="/openapi.json">/openapi.json</a>. Refusals are JSON with a{" "}
        <code>code</code>, a <code>detail</code> for people and a <code>requestId</code>.
      </p>
      {tagsOf(openApi).map(({ id, text, routes }) => (
        <section aria-labelledby={id}>
          <h2 id={id}>
            {text} <Anchor id={id} name={text} />
          </h2>
          {routes.map((route) => (
            <RouteView route={route} openApi={openApi} />
          ))}
        </section>
      ))}
    </>
  );
}

function RouteView({ route, openApi }: { readonly route: Route; readonly openApi: OpenApi }) {
  const { id, method, path, operation } = route;
  const { parameters, responses, security, summary, requestBody } = operation;
  const [[status, answered] = ["200", undefined]] = Object.entries(responses).filter(([status]) =>
    status.startsWith("2"),
  );
  const refusals = Object.entries(responses).filter(([status]) => Number(status) >= 400);
  const query = parameters.filter((parameter) => parameter.in === "query");
  const [body, answer] = [schemaOf(requestBody), schemaOf(answered)];
  return (
    <details class="route" id={id}>
      <summary>
        <span class={`method ${method}`}>{method.toUpperCase()}</span> <code>{path}</code>
        <span class="hint">{summary}</span>
      </summary>
      <h3 class="unseen">{`${method.toUpperCase()} ${path}`}</h3>
      <p>
        {summary}. <Anchor id={id} name={`${method.toUpperCase()} ${path}`} />
      </p>
      {security.length > 0 && <p class="hint">With a bearer token.</p>}
      {query.length > 0 && (
        <Shape
          title="Query"
          text={query
            .map(
              ({ name, required, schema }) =>
                `${name}${required ? "" : "?"}: ${shapeOf(schema, openApi)}${said(schema)}`,
            )
            .join("\n")}
        />
      )}
      {body && <Shape title="Takes" text={shapeOf(body, openApi)} />}
      <Shape title={`Answers ${status}`} text={answer ? shapeOf(answer, openApi) : "nothing"} />
      <Tabs id={id} samples={samplesOf(route, body !== undefined)} />
      <p>Refuses with</p>
      <dl>
        {refusals.map(([status, { description }]) => (
          <>
            <dt>{status}</dt>
            <dd>{description}</dd>
          </>
        ))}
      </dl>
    </details>
  );
}

const said = ({ description, default: usual }: Schema) =>
  `${usual === undefined ? "" : ` = ${JSON.stringify(usual)}`}${description ? `  // ${description}` : ""}`;

function Anchor({ id, name }: { readonly id: string; readonly name: string }) {
  return (
    <a class="anchor" href={`#${id}`} aria-label={`Link to ${name}`}>
      #
    </a>
  );
}

function Shape({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <>
      <p>{title}</p>
      {raw(codeBlock(text))}
    </>
  );
}

interface Sample {
  readonly name: string;
  readonly code: string;
}

/** Without a script all of them are shown, one below the other. */
function Tabs({ id, samples }: { readonly id: string; readonly samples: readonly Sample[] }) {
  return (
    <div class="tabs code" data-tabs={id}>
      {samples.map(({ name, code }) => (
        <pre data-name={name} tabindex={0}>
          <code>{code}</code>
        </pre>
      ))}
    </div>
  );
}

function samplesOf({ method, path, operation }: Route, hasBody: boolean): Sample[] {
  const verb = method.toUpperCase();
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => `\${${name}}`);
  const needsToken = operation.security.length > 0;
  const given = [
    ...(verb === "GET" ? [] : [`  method: "${verb}",`]),
    ...(needsToken ? [`  headers: { Authorization: \`Bearer \${token}\` },`] : []),
    ...(hasBody ? ["  body: JSON.stringify(body),"] : []),
  ];
  const init = given.length > 0 ? `, {\n${given.join("\n")}\n}` : "";
  const shell = path.replaceAll(
    /\{(\w+)\}/g,
    (_, name: string) => `$${name.replaceAll(/([A-Z])/g, "_$1").toUpperCase()}`,
  );
  const flags = [
    verb === "GET" ? "" : `-X ${verb} `,
    `"$GATEWAY${shell}"`,
    needsToken ? ` \\\n  -H "Authorization: Bearer $TOKEN"` : "",
    hasBody ? ` \\\n  -d @body.json` : "",
  ];
  const asked = [...(verb === "GET" ? [] : [`method: "${verb}"`]), ...(hasBody ? ["body"] : [])];
  return [
    { name: "curl", code: `curl -s ${flags.join("")}` },
    { name: "fetch", code: `const answer = await fetch(\`\${gateway}${filled}\`${init});` },
    {
      name: "Client",
      code: `const answer = await sluice.call(\`${filled}\`${asked.length > 0 ? `, { ${asked.join(", ")} }` : ""});`,
    },
  ];
}
