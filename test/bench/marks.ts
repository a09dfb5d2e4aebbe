// The bench's own places in a document: what stands between two comments that name a bench is written by it alone.

export function isMarked(text: string, name: string): boolean {
  return text.includes(startOf(name));
}

/** The text with something else there; the text itself where it has no such place. */
export function putBetweenMarks(text: string, name: string, write: () => string): string {
  const start = startOf(name);
  const [from, to] = [text.indexOf(start), text.indexOf(`<!-- end of bench ${name} -->`)];
  return from < 0 || to < from ? text : `${text.slice(0, from)}${start}\n${write()}\n\n${text.slice(to)}`;
}

function startOf(name: string): string {
  return `<!-- bench ${name} -->\n`;
}
