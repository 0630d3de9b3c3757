// Builds the page into the package: index.html, one script and one style sheet, and the digest of the source they were built from.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "src", "headrace", "serve", "page");
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
await build({
  entryPoints: { page: join(here, "src", "main.tsx") },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  outdir: out,
  legalComments: "none",
});
writeFileSync(join(out, "index.html"), readFileSync(join(here, "src", "index.html")));

const sources = ["package.json", "package-lock.json", "tsconfig.json", "build.mjs", ...readdirSync(join(here, "src")).map((name) => `src/${name}`)];
const digest = createHash("sha256");
for (const name of sources.sort()) digest.update(name + "\0").update(readFileSync(join(here, name)));
writeFileSync(join(out, "source.sha256"), digest.digest("hex") + "\n");

const sizes = readdirSync(out).map((name) => gzipSync(readFileSync(join(out, name))).length);
console.log(`first load ${(sizes.reduce((sum, size) => sum + size, 0) / 1000).toFixed(1)} kB gzip`);
