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
  zlib: ["constants", "crc32"],
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

function simulated(patches) {
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
      builder.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
        const here = patches.filter(({ file }) => join(root, file) === path);
        if (here.length === 0) return undefined;
        let contents = readFileSync(path, "utf8");
        for (const { find, replace, name } of here) {
          if (contents.split(find).length !== 2)
            throw new Error(`${name}: ${relative(root, path)} does not have once: ${find}`);
          contents = contents.replace(find, () => replace);
        }
        return { contents, loader: "ts" };
      });
    },
  };
}

/** For Node, when it runs the bundle: most of its code is warm, little is hot, and compiling all of it costs more than it saves. */
export const simulationFlags = ["--max-semi-space-size=64", "--interrupt-budget=300000"];

/** Builds the simulation, with changes to the agent's sources if faults are to be planted; returns where it is. */
export async function buildSimulation(outfile, patches = []) {
  const packageDir = (name) => dirname(require.resolve(`${name}/package.json`));
  for (const path of replaced.keys())
    if (!existsSync(path)) throw new Error(`${path} is gone; what is to be replaced?`);
  for (const { file } of patches) {
    if (!existsSync(join(root, file))) throw new Error(`${file} is gone; where is the fault to be planted?`);
  }
  await build({
    absWorkingDir: root,
    entryPoints: ["test/simulation/main.ts"],
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    sourcemap: "inline",
    logLevel: "warning",
    external: ["koffi", "classic-level", "@peculiar/x509", "reflect-metadata"],
    inject: [join(standIns, "abort.ts")],
    alias: { yaml: join(packageDir("yaml"), "browser", "index.js") },
    plugins: [simulated(patches)],
  });
  return outfile;
}
