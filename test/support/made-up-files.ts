import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A directory that looks like / of some machine, with these files in it. */
export class MadeUpFiles implements Disposable {
  readonly root: string;

  constructor(files: Readonly<Record<string, string>>) {
    this.root = mkdtempSync(join(tmpdir(), "nodelet-files-"));
    this.write(files);
  }

  write(files: Readonly<Record<string, string>>): void {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.root, path)), { recursive: true });
      writeFileSync(join(this.root, path), text);
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}
