// Bundles the simulation: the agent, the local API and the simulated runtime as they are, with stand-ins where they would
// touch the real machine. What a stand-in lacks fails the build or, when called, the run.
import { existsSync, readFileSync } from "node:fs";
import { builtinModules, createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const standIns = join(root, "test/simulation/stand-ins");
const require = createRequire(import.meta.url);

/** Modules of the agent that are replaced as a whole. */
const replaced = new Map(
  Object.entries({
    "src/ground/base/system-names.ts": "system-names.ts",
    "src/connections/host/syscalls.ts": "syscalls.ts",
    "src/ground/grpc/unix-channel.ts": "unix-channel.ts",
    "src/connections/kube/transport/transport.ts": "transport.ts",
    "src/pod/probes/probe-tcp.ts": "probe-tcp.ts",
    "src/pod/probes/http/get.ts": "http-get.ts",
  }).map(([path, standIn]) => [join(root, path), join(standIns, standIn)]),
);

/** Modules of Node that only compute. */
const harmless = new Set(["path", "util", "events", "url", "buffer", "stream", "string_decoder", "assert", "module"]);
const wholeStandIns = { fs: "node-fs.ts", "fs/promises": "node-fs-promises.ts" };
/** Functions that only compute, of modules that also do other things. */
const harmlessFunctions = {
  net: ["isIP", "isIPv4", "isIPv6", "BlockList", "SocketAddress"],
  crypto: [
    ...["createHash", "createHmac", "createPrivateKey", "createPublicKey", "sign", "verify", "timingSafeEqual"],
    ...["generateKeyPairSync", "X509Certificate", "KeyObject", "webcrypto"],
  ],
  zlib: ["constants", "crc32", "deflateRawSync", "inflateRawSync"],
  http: ["STATUS_CODES", "METHODS", "validateHeaderName", "validateHeaderValue"],
  http2: ["constants"],
  os: ["constants", "EOL"],
};

function standInFor(name) {
  const real = require(`node:${name}`);
  const kept = harmlessFunctions[name] ?? [];
  const lines = [
    `import * as real from "node:${name}";`,
    `import { overrides } from ${JSON.stringify(join(standIns, "overrides.ts"))};`,
    `import { forbidden } from ${JSON.stringify(join(standIns, "forbidden.ts"))};`,
    `const own = overrides["node:${name}"] ?? {};`,
  ];
  for (const key of Object.keys(real)) {
    if (!/^[A-Za-z_$][\w$]*$/.test(key) || key === "default") continue;
    const otherwise = kept.includes(key) ? `real.${key}` : `forbidden("node:${name}", "${key}")`;
    lines.push(`export const ${key} = own.${key} ?? ${otherwise};`);
  }
  lines.push("export default own;");
  return lines.join("\n");
}

/** The variable by which a process of the simulation learns which fault it has. */
export const faultVariable = "NODELET_SIMULATED_FAULT";

/**
 * Puts faults beside the code that they are to take the place of: a file that has some is there once as it is and once
 * with each, and which of them counts is found when the process starts. So one bundle has all faults.
 */
function plant(builder, faults) {
  const variants = new Map();
  for (const [fault, patches] of Object.entries(faults))
    for (const file of new Set(patches.map((patch) => join(root, patch.file))))
      variants.set(file, [...(variants.get(file) ?? []), fault]);
  if (variants.size === 0) return;
  builder.onResolve({ filter: /\.ts$/ }, ({ path, resolveDir, namespace }) => {
    const file = join(resolveDir, path);
    return namespace !== "choice" && variants.has(file) ? { path: file, namespace: "choice" } : undefined;
  });
  builder.onLoad({ filter: /./, namespace: "choice" }, ({ path }) => ({
    contents: choiceOf(path, variants.get(path)),
    loader: "js",
    resolveDir: dirname(path),
  }));
  builder.onResolve({ filter: /./, namespace: "choice" }, ({ path, importer }) => ({
    path: importer,
    namespace: "variant",
    suffix: `?${path}`,
  }));
  builder.onLoad({ filter: /./, namespace: "variant" }, ({ path, suffix }) => {
    const fault = decodeURIComponent(suffix.slice(1));
    const patches = (faults[fault] ?? []).filter(({ file }) => join(root, file) === path);
    return { contents: patched(path, fault, patches), loader: "ts", resolveDir: dirname(path) };
  });
}

function choiceOf(path, faults) {
  const text = readFileSync(path, "utf8");
  const names = [...text.matchAll(/^export (?:async )?(?:abstract )?(?:function\*?|class|const) (\w+)/gm)];
  if (/^export (?:\{|\*|default)/m.test(text)) throw new Error(`${path} exports more than what it declares`);
  const all = ["as it is", ...faults];
  return [
    ...all.map((fault, index) => `import * as variant${index} from ${JSON.stringify(encodeURIComponent(fault))};`),
    `const all = { ${all.map((fault, index) => `${JSON.stringify(fault)}: variant${index}`).join(", ")} };`,
    `const chosen = all[process.env.${faultVariable}] ?? variant0;`,
    ...names.map(([, name]) => `export const ${name} = chosen.${name};`),
  ].join("\n");
}

function patched(path, fault, patches) {
  let contents = readFileSync(path, "utf8");
  for (const { find, replace } of patches) {
    if (contents.split(find).length !== 2)
      throw new Error(`${fault}: ${relative(root, path)} does not have once: ${find}`);
    contents = contents.replace(find, () => replace);
  }
  return contents;
}

function simulated(faults) {
  return {
    name: "simulated machine",
    setup(builder) {
      builder.onResolve({ filter: /^node:/ }, ({ path, importer, namespace }) => {
        const name = path.slice("node:".length);
        const isOwn = importer.includes("/test/simulation/") || namespace === "stand-in";
        if (harmless.has(name) || isOwn) return { path, external: true };
        const whole = wholeStandIns[name];
        return whole === undefined ? { path: name, namespace: "stand-in" } : { path: join(standIns, whole) };
      });
      builder.onResolve({ filter: /^[a-z]/ }, ({ path }) =>
        builtinModules.includes(path) && !harmless.has(path) ? { path, namespace: "stand-in" } : undefined,
      );
      builder.onResolve({ filter: /./, namespace: "stand-in" }, ({ path }) =>
        path.startsWith("node:") ? { path, external: true } : { path },
      );
      builder.onLoad({ filter: /./, namespace: "stand-in" }, ({ path }) => ({
        contents: standInFor(path),
        loader: "js",
        resolveDir: root,
      }));
      builder.onResolve({ filter: /^@grpc\/grpc-js$/ }, () => ({ path: "@grpc/grpc-js", namespace: "library" }));
      builder.onLoad({ filter: /./, namespace: "library" }, ({ path }) => ({
        contents: [
          `import { forbidden } from ${JSON.stringify(join(standIns, "forbidden.ts"))};`,
          ...Object.keys(require(path)).map((key) =>
            key === "status" || key === "Metadata"
              ? `export const ${key} = ${key === "status" ? JSON.stringify(require(path).status) : "class {}"};`
              : `export const ${key} = forbidden("${path}", "${key}");`,
          ),
        ].join("\n"),
        loader: "js",
        resolveDir: root,
      }));
      builder.onResolve({ filter: /\.ts$/ }, ({ path, resolveDir, importer }) => {
        if (!path.startsWith(".") || importer.startsWith(standIns)) return undefined;
        const standIn = replaced.get(join(resolveDir, path));
        return standIn === undefined ? undefined : { path: standIn };
      });
      plant(builder, faults);
    },
  };
}

/**
 * For a Node of that version, when it runs the bundle. What one step makes is garbage by the next, so collecting it
 * seldom costs least, in one thread: others would only take turns with the other processes of the simulation. And no code
 * is hot: with Node 20 a quarter of the time went into optimizing functions that did not run often enough afterwards to
 * pay for it. Later versions have a cheaper compiler before that one, and not this option.
 */
export const simulationFlags = (version) => [
  ...["--min-semi-space-size=16", "--max-semi-space-size=16", "--initial-old-space-size=256", "--single-threaded-gc"],
  ...(version.startsWith("20.") ? ["--interrupt-budget=500000", "--max-inlined-bytecode-size-cumulative=200"] : []),
];

/**
 * Builds the simulation, with faults that can be planted if there are any: changes to the agent's sources, by name.
 * Returns where it is. Without a place it is built and thrown away.
 */
export async function buildSimulation(outfile, faults = {}) {
  const packageDir = (name) => dirname(require.resolve(`${name}/package.json`));
  for (const path of replaced.keys())
    if (!existsSync(path)) throw new Error(`${path} is gone; what is to be replaced?`);
  for (const { file } of Object.values(faults).flat()) {
    if (!existsSync(join(root, file))) throw new Error(`${file} is gone; where is the fault to be planted?`);
  }
  const { warnings } = await build({
    absWorkingDir: root,
    entryPoints: ["test/simulation/main.ts"],
    ...(outfile === undefined ? { write: false } : { outfile }),
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    // Every process reads the bundle anew: apart from it, and without the blanks, it is a third as long.
    sourcemap: outfile === undefined ? false : "linked",
    sourcesContent: false,
    minifyWhitespace: true,
    minifySyntax: true,
    logLevel: "warning",
    external: ["koffi", "classic-level", "@peculiar/x509", "reflect-metadata"],
    inject: [join(standIns, "abort.ts")],
    alias: { yaml: join(packageDir("yaml"), "browser", "index.js") },
    plugins: [simulated(faults)],
  });
  // What a stand-in lacks is only a warning where a module was imported as a whole.
  if (warnings.length > 0) throw new Error(`the simulation was bundled with ${warnings.length} warnings`);
  return outfile;
}
