// Ends a build: a check of how much script the shell and the list of sweeps need.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const BUDGET_KIB = 280;
const dist = new URL("../dist/", import.meta.url).pathname;
const assets = join(dist, "assets");

const sizes = new Map();
for (const name of readdirSync(assets)) {
  if (!/\.(js|css|svg)$/.test(name)) continue;
  sizes.set(name, gzipSync(readFileSync(join(assets, name)), { level: 9 }).length);
}
writeFileSync(join(dist, ".gitkeep"), "");

// What a browser loads first: the entry of index.html, what it imports at once,
// and the list's own chunk.
const entry = [...readFileSync(join(dist, "index.html"), "utf8").matchAll(/assets\/([\w.-]+\.js)/g)].map((m) => m[1]);
const list = [...sizes.keys()].filter((name) => /^SweepsPage-.*\.js$/.test(name));
const seen = new Set();
const visit = (name) => {
  if (seen.has(name) || !sizes.has(name)) return;
  seen.add(name);
  const text = readFileSync(join(assets, name), "utf8");
  for (const m of text.matchAll(/(?:from|import)\s*"\.\/([\w.-]+\.js)"/g)) visit(m[1]);
};
[...entry, ...list].forEach(visit);

const kib = [...seen].reduce((sum, name) => sum + sizes.get(name), 0) / 1024;
console.log(`script of shell and list: ${kib.toFixed(1)} KiB gzip (at most ${BUDGET_KIB})`);
if (kib > BUDGET_KIB) {
  console.error("too much script is loaded first: load a page or a library only where it is shown");
  process.exit(1);
}

// Last, as only a build that has this is embedded: for which API it is.
const api = readFileSync(new URL("../../api/openapi.yaml", import.meta.url));
writeFileSync(join(dist, ".api"), createHash("sha256").update(api).digest("hex"));
