// Bundles the agent and its commands into dist/, and the dashboard's pages into dist/dashboard/. koffi and classic-level stay outside: they are native addons, loaded only when needed.
import { rmSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { build } from "esbuild";
import { buildDashboard } from "./build-dashboard.mjs";
import { bundling, ownProcesses } from "./bundling.mjs";

const packageDir = (name) => dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));

rmSync("dist", { recursive: true, force: true });
await build({
  entryPoints: {
    nodelet: "src/main.ts",
    ...Object.fromEntries(ownProcesses.map((file) => [basename(file, ".ts"), file])),
  },
  outdir: "dist",
  ...bundling,
  minifySyntax: true,
  external: ["koffi", "classic-level"],
  // These offer Node their CommonJS form, whose names are lost when a bundle imports it lazily; this is their ESM form.
  alias: {
    yaml: join(packageDir("yaml"), "browser", "index.js"),
    "@peculiar/x509": join(packageDir("@peculiar/x509"), "build", "x509.es.js"),
  },
  // CommonJS packages inside an ESM bundle still call require for Node's own modules.
  banner: {
    js: 'import { createRequire as nodeletRequire } from "node:module"; const require = nodeletRequire(import.meta.url);',
  },
});
await buildDashboard(join("dist", "dashboard"));
