// `/docs`: each file of docs/ as a page, and every route of the OpenAPI document on another.
import { raw } from "hono/html";
import type { Child } from "hono/jsx";
import { type Heading, renderMarkdown } from "./markdown.ts";
import { type OpenApi, tagsOf } from "./openapi.ts";
import { Reference } from "./reference.tsx";

export interface DocsPage {
  /** `index`, `clients`: the file's name without its ending. */
  readonly name: string;
  readonly title: string;
  readonly body: Child;
}

interface Entry {
  readonly name: string;
  readonly title: string;
}

/** What a newcomer reads first; any other file comes after, by its name. */
const order = [
  "client",
  "clients",
  "media",
  "uploads",
  "quotas-and-money",
  "exact-quota",
  "settings",
  "deploy-and-limits",
  "security",
];
const reference = { name: "routes", title: "Every route" };
const shownSections = 5;
/** Of pictures, which lie beside the pages. */
export const assetPattern = /\.(png|jpg|jpeg|webp|svg)$/;

export function docsPages(docs: ReadonlyMap<string, string>, document: unknown): DocsPage[] {
  const openApi = document as OpenApi;
  const placeOf = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);
  const names = [...docs.keys()].sort((a, b) => placeOf(a) - placeOf(b) || a.localeCompare(b));
  const entries = names.map((name) => ({ name, title: titleOf(docs.get(name) ?? "", name) }));
  const written = entries.map(({ name, title }) => {
    const { html, headings } = renderMarkdown(docs.get(name) ?? "", (href) => resolveLink(href, docs));
    const sections = headings.filter(({ level }) => level === 2);
    const body = (
      <Frame entries={entries} name={name} headings={sections}>
        {raw(html)}
      </Frame>
    );
    return { name, title, body, sections };
  });
  const routes = (
    <Frame entries={entries} name={reference.name} headings={tagsOf(openApi)}>
      <Reference openApi={openApi} />
    </Frame>
  );
  const start = <Start pages={[...written, { ...reference, sections: tagsOf(openApi) }]} />;
  return [{ name: "index", title: "Docs", body: start }, ...written, { ...reference, body: routes }];
}

function titleOf(markdown: string, name: string): string {
  return /^# (.*)$/m.exec(markdown)?.[1]?.replaceAll("`", "") ?? name;
}

/** A file of the same folder is a page; what lies elsewhere in the repository is not published. */
function resolveLink(href: string, docs: ReadonlyMap<string, string>): string | undefined {
  if (/^https?:\/\//.test(href) || href.startsWith("#")) return href;
  const [, name = "", anchor = ""] = /^(?:\.\/)?([\w-]+)\.md(#.*)?$/.exec(href) ?? [];
  if (docs.has(name)) return `/docs/${name}${anchor}`;
  return assetPattern.test(href) && !href.startsWith("..") ? `/docs/${href.replace(/^\.\//, "")}` : undefined;
}

interface Framed {
  readonly entries: readonly Entry[];
  readonly name: string;
  readonly headings: readonly Pick<Heading, "id" | "text">[];
  readonly children?: Child;
}

function Frame({ entries, name, headings, children }: Framed) {
  return (
    <div class="docs">
      <nav aria-label="Docs">
        <ul>
          {[...entries, reference].map((entry) => (
            <li>
              <a href={`/docs/${entry.name}`} aria-current={entry.name === name ? "page" : undefined}>
                {entry.title}
              </a>
              {entry.name === name && headings.length > 0 && (
                <ul>
                  {headings.map(({ id, text }) => (
                    <li>
                      <a href={`#${id}`}>{text}</a>
                    </li>
                  ))}
                </ul>
              )}
            </li>
          ))}
        </ul>
      </nav>
      <main id="main">
        <article>{children}</article>
      </main>
    </div>
  );
}

/** Every page with its first sections. */
function Start({ pages }: { readonly pages: readonly (Entry & { readonly sections: Framed["headings"] })[] }) {
  return (
    <main id="main" class="start">
      <h1>Docs</h1>
      <p class="lead">
        A gateway to AI models for pictures, films, speech and text. Apps call them without the provider's key.
      </p>
      <ul class="cards">
        {pages.map(({ name, title, sections }) => (
          <li class="card">
            <h2>
              <a href={`/docs/${name}`}>{title}</a>
            </h2>
            <ul>
              {sections.slice(0, shownSections).map(({ id, text }) => (
                <li>
                  <a href={`/docs/${name}#${id}`}>{text}</a>
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
    </main>
  );
}
