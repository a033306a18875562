import fs from "node:fs";
import promises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { mock } from "node:test";

/** Until it is disposed of, this process has as many open files as it may: none can be opened, there or not. */
export function withoutDescriptors(): Disposable {
  const mocks = [
    mock.method(fs, "readFileSync", refuse),
    mock.method(promises, "open", async () => refuse()),
    mock.method(promises, "readFile", async () => refuse()),
  ];
  syncBuiltinESMExports();
  return {
    [Symbol.dispose]() {
      for (const each of mocks) each.mock.restore();
      syncBuiltinESMExports();
    },
  };
}

function refuse(): never {
  throw Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
}
