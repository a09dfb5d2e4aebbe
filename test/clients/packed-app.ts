// An app of Vite and React that has the package as `npm pack` makes it, built and served on a port of its own.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { copyCheckout } from "../e2e/support/checkout.ts";

const here = import.meta.dirname;
const packages = join(here, "node_modules");

export interface PackedApp {
  readonly folder: string;
  /** The package, as it lies in the app. */
  readonly packaged: string;
  /** As `npm pack` makes it. */
  readonly tarball: string;
  readonly remove: () => void;
}

/** With the components that the docs and the README show. What the package needs lies a folder above the app, as npm may place it. */
export function packApp(shown = "", first = ""): PackedApp {
  const clone = copyCheckout();
  for (const name of ["README.md", "LICENSE"]) cpSync(join(here, "../..", name), join(clone.path, name));
  const room = mkdtempSync(join(tmpdir(), "sluice-app-"));
  const folder = join(room, "app");
  const packaged = join(folder, "node_modules/sluice");
  mkdirSync(packaged, { recursive: true });
  execFileSync("npm", ["pack", "--pack-destination", room, "--loglevel=error"], { cwd: clone.path, stdio: "pipe" });
  const tarball = readdirSync(room).find((name) => name.endsWith(".tgz")) ?? "";
  execFileSync("tar", ["-xzf", join(room, tarball), "-C", packaged, "--strip-components=1"]);
  symlinkSync(join(here, "../../node_modules"), join(room, "node_modules"));
  for (const name of ["react", "react-dom", "scheduler"]) {
    symlinkSync(join(packages, name), join(folder, "node_modules", name));
  }
  cpSync(join(here, "app"), folder, { recursive: true });
  const here8787 = '"http://localhost:8787"';
  writeFileSync(
    join(folder, "picture.jsx"),
    shown.replace(here8787, 'new URLSearchParams(location.search).get("gateway")'),
  );
  writeFileSync(join(folder, "first.jsx"), first);
  clone.remove();
  return {
    folder,
    packaged,
    tarball: join(room, tarball),
    remove: () => rmSync(room, { recursive: true, force: true }),
  };
}

/** With React as developers have it, which mounts everything twice in its strict mode. */
export function buildApp({ folder }: PackedApp): void {
  const vite = join(packages, "vite/bin/vite.js");
  const args = [vite, "build", "--mode", "development", "--base", "./", "--logLevel", "error"];
  const options = { cwd: folder, stdio: "pipe", env: { ...process.env, NODE_ENV: "development" } } as const;
  execFileSync(process.execPath, args, options);
}

const types: Record<string, string> = { ".html": "text/html", ".js": "text/javascript" };

/** Another origin than the gateway's, as a page of an app is. */
export async function serveFolder(folder: string): Promise<{ url: string; server: Server }> {
  const server = createServer(({ url = "/" }, response) => {
    const path = join(folder, new URL(url, "http://localhost").pathname.replace(/\/$/, "/index.html"));
    try {
      const body = readFileSync(path);
      response.writeHead(200, { "Content-Type": types[extname(path)] ?? "application/octet-stream" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}
