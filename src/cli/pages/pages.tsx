// The pages as they lie in the folder: HTML that says what it is before any script has run, and without one.
import type { Child } from "hono/jsx";
import { docsPages } from "./docs.tsx";
import type { MakePages } from "./given.ts";

interface Page {
  readonly path: string;
  readonly title: string;
  readonly script: string;
  readonly turnstileSiteKey?: string | undefined;
  readonly children?: Child;
}

const links = [
  ["/", "Playground"],
  ["/gallery", "Gallery"],
  ["/account", "Account"],
  ["/docs", "Docs"],
] as const;

export const pages: MakePages = ({ docs, openApi, turnstileSiteKey }) => {
  const apps = [
    {
      file: "index.html",
      path: "/",
      title: "Playground",
      script: "playground",
      says: "Try every model here, see its price before you run it, and copy the code.",
    },
    {
      file: "gallery.html",
      path: "/gallery",
      title: "Gallery",
      script: "gallery",
      says: "What you made and what you uploaded, until it ends.",
    },
    {
      file: "account.html",
      path: "/account",
      title: "Account",
      script: "account",
      says: "What you may still use, what you spent, and your last jobs.",
    },
  ];
  const files = apps.map(({ file, path, title, script, says }) => {
    const html = (
      <Shell {...{ path, title, script, turnstileSiteKey }}>
        <main id="main" class={script}>
          <h1 class={path === "/" ? "unseen" : ""}>{title}</h1>
          <noscript>
            <p class="noscript">
              Sluice stands in front of AI models for pictures, films, speech and text: apps call them without the
              provider's key.
              {` ${says}`} This page needs JavaScript; <a href="/docs">the docs</a> do not.
            </p>
          </noscript>
          <div id="turnstile" />
          <div id="app" />
        </main>
      </Shell>
    );
    return [file, document(html)] as const;
  });
  const written = docsPages(docs, openApi).map(({ name, title, body }) => {
    const html = (
      <Shell path="/docs" title={title} script="docs">
        {body}
      </Shell>
    );
    return [`docs/${name}.html`, document(html)] as const;
  });
  return new Map([...files, ...written]);
};

const document = (html: { toString(): string }) => `<!doctype html>\n${html}\n`;

function Shell({ path, title, script, turnstileSiteKey, children }: Page) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="description" content="A gateway to AI models for pictures, films, speech and text" />
        {turnstileSiteKey && <meta name="turnstile" content={turnstileSiteKey} />}
        <title>{`${title} · Sluice`}</title>
        <link rel="icon" href="/site/icon.svg" type="image/svg+xml" />
        <link rel="stylesheet" href="/site/style.css" />
        <script type="module" src={`/site/${script}.js`} />
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        <header>
          <a class="brand" href="/">
            <img src="/site/icon.svg" alt="" width="24" height="24" />
            Sluice
          </a>
          <nav aria-label="Pages">
            {links.map(([href, name]) => (
              <a href={href} aria-current={href === path ? "page" : undefined}>
                {name}
              </a>
            ))}
          </nav>
        </header>
        {children}
      </body>
    </html>
  );
}
