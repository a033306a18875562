// Bundles tests, with one copy of what they share: each then starts in a tenth of the processor time that it takes
// to translate and link several hundred files anew in every test process.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { bundling, ownProcesses } from "./bundling.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const cache = join(root, "node_modules", ".cache", "nodelet");
/** Of this run alone: another one beside it must not lose its files when this one builds its own. */
const outdir = join(cache, `tests-${process.pid}`);

/** Files find fixtures and programs by their own place, which must stay that of the source. */
const keepPlaces = {
  name: "keep places",
  setup(builder) {
    builder.onLoad({ filter: /\.(?:ts|mjs)$/ }, ({ path }) => {
      if (path.includes("node_modules")) return undefined;
      const text = readFileSync(path, "utf8");
      const startsProcess = text.includes('import.meta.url.endsWith(".ts")');
      const place = pathToFileURL(startsProcess ? join(outdir, "started.mjs") : path).href;
      return {
        contents: text.replaceAll("import.meta.url", JSON.stringify(place)),
        loader: path.endsWith(".ts") ? "ts" : "js",
      };
    });
  },
};

/** Builds `files` (relative to the project) and returns where each is to be run from. */
export async function buildTests(files) {
  removeOldBuilds();
  process.once("exit", () => rmSync(outdir, { recursive: true, force: true }));
  await build({
    absWorkingDir: root,
    entryPoints: [
      ...files.map((file) => ({ in: file, out: file.replace(/\.(?:ts|mjs)$/, "") })),
      ...ownProcesses.map((file) => ({ in: file, out: basename(file, ".ts") })),
    ],
    outdir,
    ...bundling,
    packages: "external",
    plugins: [keepPlaces],
  });
  return new Map(files.map((file) => [file, join(outdir, file.replace(/\.(?:ts|mjs)$/, ".mjs"))]));
}

/** What to run for several files in one process; `bundles` is where each of them is. */
export function runTogether(bundles) {
  const entry = join(outdir, `together-${basename(bundles[0], ".mjs")}-${bundles.length}.mjs`);
  writeFileSync(entry, bundles.map((bundle) => `import ${JSON.stringify(pathToFileURL(bundle).href)};\n`).join(""));
  return entry;
}

/** What runs that were killed have left. */
function removeOldBuilds() {
  if (!existsSync(cache)) return;
  for (const name of readdirSync(cache)) {
    const [, pid] = /^tests-(\d+)$/.exec(name) ?? [];
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue;
    rmSync(join(cache, name), { recursive: true, force: true });
  }
}
