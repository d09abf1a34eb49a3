// Bundles the front end into dist: the same sources and the same lock file give the same bytes.
import { build } from "esbuild";
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const root = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(root, "dist");
// What a browser downloads for the whole application, compressed.
const limit = 250 * 1024;

await mkdir(out, { recursive: true });
await build({
  absWorkingDir: root,
  entryPoints: { app: "src/main.tsx", follow: "src/follow.ts" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  banner: { js: `/* ${await licenses()} */` },
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "warning",
});
await copyFile(join(root, "src/index.html"), join(out, "index.html"));

let size = 0;
for (const name of ["index.html", "app.js", "app.css", "follow.js"]) {
  size += gzipSync(await readFile(join(out, name)), { level: 9 }).length;
}
if (size > limit) {
  console.error(`the application has ${size} bytes compressed; at most ${limit} are allowed`);
  process.exit(1);
}
console.log(`${size} bytes compressed`);

// The bundle contains other people's packages; their licenses ask to be named with it.
async function licenses() {
  const lock = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8"));
  const list = [];
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (path === "" || /node_modules\/(@?esbuild|@?typescript|@types)/.test(path)) continue;
    list.push(`${path.replace(/^.*node_modules\//, "")} ${entry.version} (${entry.license ?? "unknown"})`);
  }
  return "fit, Apache-2.0. Contains " + list.sort().join(", ");
}
