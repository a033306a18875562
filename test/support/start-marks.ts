import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { PodSpec } from "../../src/ground/model/index.ts";
import type { TestContainerd } from "./containerd.ts";
import { untilTold } from "./raw-runtime.ts";

const untilToldScript = untilTold.at(-1) ?? "";

/** The spec of a pod whose container leaves a line in a file of the node each time it starts. */
export function marking(
  containerd: TestContainerd,
  name: string,
  script = untilToldScript,
): { readonly volumes: NonNullable<PodSpec["volumes"]>; readonly containers: PodSpec["containers"] } {
  return {
    volumes: [{ name: "marks", hostPath: { path: containerd.stateDir } }],
    containers: [
      {
        name: "main",
        image: containerd.images.busybox,
        command: ["sh", "-c", `echo start >> /marks/${name}.starts; ${script}`],
        volumeMounts: [{ name: "marks", mountPath: "/marks" }],
      },
    ],
  };
}

/** How often the container of `marking` has started. */
export async function startsOf(containerd: TestContainerd, name: string): Promise<number> {
  const text = await readFile(join(containerd.stateDir, `${name}.starts`), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line === "start").length;
}
