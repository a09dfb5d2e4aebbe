// Names of files as URLs and manifests have them, whatever separates folders on this machine.
import system from "node:path";

/** `site/style.css`, for `…\dist\site\site\style.css` too. */
export function nameIn(folder: string, path: string, { relative, sep } = system): string {
  return relative(folder, path).replaceAll(sep, "/");
}
