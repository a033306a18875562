// Bundles the pages of the dashboard: a script for those that are seen first and one for the rest, a style and an icon, each named by a digest of its content and packed,
// so that the agent has nothing to do but to send them.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const source = "src/beside/dashboard/page";

export async function buildDashboard(directory) {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const { outputFiles, metafile } = await build({
    entryPoints: { app: `${source}/main.tsx` },
    outdir: directory,
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    splitting: true,
    assetNames: "[name]-[hash]",
    loader: { ".svg": "file" },
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    logLevel: "warning",
  });
  const pack = (name, content) => writeFileSync(join(directory, `${name}.gz`), gzipSync(content, { level: 9 }));
  const named = (ending) => basename(outputFiles.find(({ path }) => path.endsWith(ending)).path);
  const [[script, { imports }]] = Object.entries(metafile.outputs).filter(([path]) => /\/app-[^/]*\.js$/.test(path));
  // What the script can't do without is asked for together with it.
  const first = imports.filter(({ kind }) => kind === "import-statement").map(({ path }) => basename(path));
  for (const { path, contents } of outputFiles) pack(basename(path), contents);
  const page = readFileSync(`${source}/index.html`, "utf8")
    .replace("ICON", named(".svg"))
    .replace("STYLE", named(".css"))
    .replace("SCRIPT", basename(script))
    .replace(/.*PRELOAD.*/, (line) => first.map((name) => line.replace("PRELOAD", name)).join("\n"));
  pack("index.html", page.replace(/\n\s*/g, "\n"));
}
