import type { Clock, FieldReader } from "../../../ground/base/index.ts";
import { LiveFile } from "./live-file.ts";

/** Bytes that stand in the kubeconfig, or in a file that may change. */
export type Material =
  | { readonly type: "data"; readonly data: Buffer }
  | { readonly type: "file"; readonly path: string };

/** `<field>-data` (base64) or `<field>` (a path); data wins, as upstream has it. */
export function readMaterial(
  reader: FieldReader,
  field: string,
  resolve: (path: string) => string,
  problems: string[],
): Material | undefined {
  const encoded = reader.string(`${field}-data`);
  const path = reader.string(field);
  if (encoded !== "") {
    if (!/^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(encoded)) {
      problems.push(`${reader.at(`${field}-data`)}: found text that is not base64; want base64 of a PEM file`);
      return undefined;
    }
    return { type: "data", data: Buffer.from(encoded, "base64") };
  }
  return path === "" ? undefined : { type: "file", path: resolve(path) };
}

/** Reads the bytes, again and again where they stand in a file. */
export class LiveMaterial {
  readonly #source: Buffer | LiveFile;

  constructor(material: Material, clock: Clock) {
    this.#source = material.type === "data" ? material.data : new LiveFile(material.path, clock);
  }

  read(): Promise<Buffer> {
    return this.#source instanceof LiveFile ? this.#source.read() : Promise.resolve(this.#source);
  }

  doubt(): void {
    if (this.#source instanceof LiveFile) this.#source.doubt();
  }

  /** The path, or words for data that stands in the kubeconfig. */
  get where(): string {
    return this.#source instanceof LiveFile ? this.#source.path : "the kubeconfig's own data";
  }
}
