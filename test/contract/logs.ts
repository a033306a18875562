import assert from "node:assert/strict";
import { readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { eventually, fails, type Pods } from "./pods.ts";

const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

export function logContract(pods: Pods): void {
  test("logs: one line per line with time, stream and F, or P for a line without its end", async () => {
    const pod = await pods.run();
    const script = "echo first; echo second >&2; echo 'with  spaces'; printf 'no end'";
    const id = await pods.start(pod, ["sh", "-c", script]);
    const { logPath } = await pods.untilExited(id);
    const lines = await eventually(async () => {
      const found = (await readFile(logPath, "utf8")).split("\n");
      return found.length === 5 ? found : undefined;
    });
    assert.equal(lines.pop(), "");
    const parsed = lines.map((line) => /^(\S+) (\S+) (\S+) (.*)$/.exec(line)?.slice(1) ?? [line]);
    assert.ok(
      parsed.every(([at = ""]) => time.test(at)),
      lines.join("\n"),
    );
    assert.deepEqual(
      parsed.map(([, stream, tag, text]) => [stream, tag, text]).sort(),
      [
        ["stdout", "F", "first"],
        ["stderr", "F", "second"],
        ["stdout", "F", "with  spaces"],
        ["stdout", "P", "no end"],
      ].sort(),
    );
    await pods.remove(pod);
  });

  test("after a rotation the log goes on in a new file; only while the container runs", async () => {
    const pod = await pods.run();
    const id = await pods.start(pod, ["sh", "-c", "while true; do echo tick; sleep 0.1; done"]);
    const path = join(pod.config.logDirectory, "main/0.log");
    const hasText = async () => ((await readFile(path, "utf8").catch(() => "")) === "" ? undefined : true);
    await eventually(hasText);
    await rename(path, `${path}.1`);
    await pods.runtime.reopenContainerLog({ containerId: id });
    await eventually(hasText);
    await pods.runtime.stopContainer({ containerId: id, timeout: 0n });
    await assert.rejects(
      pods.runtime.reopenContainerLog({ containerId: id }),
      fails("Unknown", /container is not running/),
    );
    await pods.runtime.removeContainer({ containerId: id });
    assert.match(await readFile(path, "utf8"), /stdout F tick\n/, "the runtime leaves the log to us");
    await pods.remove(pod);
  });
}
