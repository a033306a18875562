import { rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const repository = fileURLToPath(new URL("../..", import.meta.url));

/** A file of test/support/ as a program that is run in processes of its own. */
export class BundledProgram {
  readonly path: string;
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
    this.path = join(repository, ".nodelet", `${name}-${process.pid}.mjs`);
  }

  async build(): Promise<AsyncDisposable> {
    await build({
      entryPoints: [join(repository, `test/support/${this.#name}.ts`)],
      outfile: this.path,
      bundle: true,
      format: "esm",
      platform: "node",
      target: "node20",
      logLevel: "error",
      banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    });
    return { [Symbol.asyncDispose]: () => rm(this.path, { force: true }) };
  }
}
