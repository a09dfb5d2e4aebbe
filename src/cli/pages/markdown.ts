// Markdown as the docs use it: headings with anchors, lists, tables, code, links and pictures. HTML in it is text.

export interface Heading {
  readonly level: number;
  readonly text: string;
  readonly id: string;
}

export interface Rendered {
  readonly html: string;
  readonly headings: readonly Heading[];
}

/** Where a link of the document leads, or undefined where the pages have no such place: then its words stay. */
export type ResolveLink = (href: string) => string | undefined;

export function renderMarkdown(markdown: string, resolve: ResolveLink): Rendered {
  const lines = markdown.replaceAll("\r\n", "\n").split("\n");
  const headings: Heading[] = [];
  const html = blocks(lines, { resolve, headings, codes: 0 });
  return { html, headings };
}

interface Context {
  readonly resolve: ResolveLink;
  readonly headings: Heading[];
  codes: number;
}

const fence = /^(\s*)(```+|~~~+)\s*(\S*).*$/;
const heading = /^(#{1,6})\s+(.*?)\s*#*$/;
const item = /^(\s*)([-*+]|\d+[.)])\s+(.*)$/;
const rule = /^(-{3,}|\*{3,})$/;
const divider = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function blocks(lines: readonly string[], context: Context): string {
  let html = "";
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? "";
    const upTo = (isOver: (line: string, at: number) => boolean) => {
      let end = at + 1;
      while (end < lines.length && !isOver(lines[end] ?? "", end)) end++;
      return end;
    };
    const [, indent = "", mark] = fence.exec(line) ?? [];
    if (line.trim() === "" || rule.test(line)) {
      at++;
    } else if (mark !== undefined) {
      const end = upTo((next) => next.trim().startsWith(mark) && next.trim().length <= mark.length);
      const code = lines
        .slice(at + 1, end)
        .map((one) => (one.startsWith(indent) ? one.slice(indent.length) : one.trimStart()));
      html += codeBlock(code.join("\n"));
      at = end + 1;
    } else if (heading.test(line)) {
      html += headingOf(line, context);
      at++;
    } else if (line.includes("|") && divider.test(lines[at + 1] ?? "")) {
      const end = upTo((next) => !next.includes("|"));
      html += table(lines.slice(at, end), context);
      at = end;
    } else if (line.startsWith(">")) {
      const end = upTo((next) => !next.startsWith(">"));
      const quoted = lines.slice(at, end).map((one) => one.replace(/^> ?/, ""));
      html += `<blockquote>${blocks(quoted, context)}</blockquote>`;
      at = end;
    } else if (item.test(line)) {
      const end = upTo(
        (next, place) =>
          next.trim() !== "" && !/^\s/.test(next) && !item.test(next) && (lines[place - 1] ?? "").trim() === "",
      );
      html += list(lines.slice(at, end), context);
      at = end;
    } else {
      const end = upTo(
        (next) =>
          next.trim() === "" || fence.test(next) || heading.test(next) || next.startsWith(">") || item.test(next),
      );
      html += `<p>${inline(lines.slice(at, end).join(" "), context)}</p>\n`;
      at = end;
    }
  }
  return html;
}

/** What scrolls is reached by the keyboard. */
export function codeBlock(code: string): string {
  return `<div class="code"><pre tabindex="0"><code>${escapeHtml(code)}</code></pre></div>\n`;
}

function headingOf(line: string, context: Context): string {
  const [, marks = "", text = ""] = heading.exec(line) ?? [];
  const plain = text.replaceAll(/[`*]|\[([^\]]*)\]\([^)]*\)/g, "$1");
  const slug = slugOf(plain);
  const isTaken = (wanted: string) => context.headings.some(({ id }) => id === wanted);
  let id = slug;
  for (let same = 1; isTaken(id); same++) id = `${slug}-${same}`;
  const level = marks.length;
  context.headings.push({ level, text: plain, id });
  const anchor = level === 1 ? "" : ` <a class="anchor" href="#${id}" aria-label="Link to ${escapeHtml(plain)}">#</a>`;
  return `<h${level} id="${id}">${inline(text, context)}${anchor}</h${level}>\n`;
}

/** As code hosts make them, so that the same links work there and here. */
export function slugOf(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");
}

function table(lines: readonly string[], context: Context): string {
  const cellsOf = (line: string) => {
    const inner = line.trim().replace(/^\|/, "").replace(/\|$/, "");
    return inner.split(/(?<!\\)\|/).map((cell) => inline(cell.trim().replaceAll("\\|", "|"), context));
  };
  const [head = "", , ...rows] = lines;
  // The corner of a table is no heading.
  const cellOf = (text: string, tag: string) => (text === "" ? "<td></td>" : `<${tag}>${text}</${tag}>`);
  const row = (cells: readonly string[], tag: string) => `<tr>${cells.map((cell) => cellOf(cell, tag)).join("")}</tr>`;
  const body = rows.map((line) => row(cellsOf(line), "td")).join("\n");
  return `<div class="scroll" tabindex="0"><table><thead>${row(cellsOf(head), "th")}</thead><tbody>${body}</tbody></table></div>\n`;
}

function list(lines: readonly string[], context: Context): string {
  const [, , mark = "", first = ""] = item.exec(lines[0] ?? "") ?? [];
  const indent = (lines[0] ?? "").length - first.length;
  const items: string[][] = [];
  for (const line of lines) {
    const [, before = "", , text = ""] = item.exec(line) ?? [];
    if (text !== "" && before.length < indent && !line.startsWith(" ".repeat(indent))) items.push([text]);
    else items.at(-1)?.push(line.startsWith(" ".repeat(indent)) ? line.slice(indent) : line.trimStart());
  }
  const tag = /\d/.test(mark) ? "ol" : "ul";
  return `<${tag}>${items.map((one) => `<li>${unwrapped(blocks(one, context))}</li>`).join("")}</${tag}>\n`;
}

/** An item of one paragraph needs no space around it. */
function unwrapped(html: string): string {
  return html.match(/<p>/g)?.length === 1 ? html.replace(/^<p>(.*?)<\/p>\n/s, "$1") : html;
}

/** Code is taken out first: nothing in it is markup. */
function inline(text: string, context: Context): string {
  const codes: string[] = [];
  const keep = (html: string) => `\uE000${codes.push(html) - 1}\uE000`;
  const kept = text.replaceAll(/(`+)(.+?)\1/g, (_, __, code: string) =>
    keep(`<code>${escapeHtml(code.replaceAll(/^ (.*) $/g, "$1"))}</code>`),
  );
  const html = escapeHtml(kept)
    .replaceAll(/!\[([^\]]*)\]\(([^)\s]+)[^)]*\)/g, (_, alt: string, href: string) => keep(picture(alt, href, context)))
    .replaceAll(/\[([^\]]+)\]\(([^)\s]+)[^)]*\)/g, (_, words: string, href: string) => link(words, href, context))
    .replaceAll(/&lt;(https?:\/\/[^\s&]+)&gt;/g, (_, href: string) => link(href, href, context))
    .replaceAll(/\*\*(.+?)\*\*/g, "<strong>$1</strong>")
    .replaceAll(/(?<![\w*])\*([^*\s][^*]*?)\*(?![\w*])/g, "<em>$1</em>");
  let whole = html;
  for (let depth = 0; depth < 2; depth++)
    whole = whole.replaceAll(/\uE000(\d+)\uE000/g, (_, at: string) => codes[Number(at)] ?? "");
  return whole;
}

function link(words: string, href: string, { resolve }: Context): string {
  const target = resolve(href);
  return target === undefined ? words : `<a href="${target}">${words}</a>`;
}

function picture(alt: string, href: string, { resolve }: Context): string {
  const target = resolve(href);
  return target === undefined ? alt : `<img src="${target}" alt="${alt}" loading="lazy">`;
}

export function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
