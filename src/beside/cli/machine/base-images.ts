import { readFile } from "node:fs/promises";
import { isMissing } from "../../../ground/base/index.ts";
import { run } from "./command.ts";
import { buildImage, type ImageRecipe, type OciImage } from "./oci-image.ts";
import type { TarEntry } from "./tar.ts";

/** The images every machine has; made from the host's static busybox, because nothing may be pulled. */
export const baseImageNames = { busybox: "localhost/nodelet/busybox:1", pause: "localhost/nodelet/pause:1" } as const;

const busyboxPaths = ["/bin/busybox", "/usr/bin/busybox"];

// The first process of a pod must reap what others leave behind and end on SIGTERM; `wait` in a shell does both.
const pauseScript = "trap 'exit 0' TERM INT; while :; do sleep 2147483647 & wait; done";

export async function buildBaseImages(): Promise<readonly OciImage[]> {
  const entries = await busyboxEntries();
  return [
    buildImage({ name: baseImageNames.busybox, entries, command: ["/bin/sh"] }),
    buildImage({ name: baseImageNames.pause, entries, entrypoint: ["/bin/sh", "-c", pauseScript] }),
  ];
}

/** An image with busybox and its commands plus what the recipe adds. */
export async function buildBusyboxImage(
  recipe: Omit<ImageRecipe, "entries"> & Partial<ImageRecipe>,
): Promise<OciImage> {
  return buildImage({ ...recipe, entries: [...(await busyboxEntries()), ...(recipe.entries ?? [])] });
}

async function busyboxEntries(): Promise<readonly TarEntry[]> {
  const { path, content } = await readBusybox();
  const applets = (await run(path, ["--list"])).split("\n").filter((name) => name !== "" && name !== "busybox");
  return [
    ...["bin", "dev", "etc", "home", "proc", "root", "run", "sys", "usr", "usr/bin", "var"].map(
      (dir): TarEntry => ({ type: "directory", path: dir }),
    ),
    { type: "directory", path: "tmp", mode: 0o1777 },
    { type: "directory", path: "home/user", owner: 1000 },
    { type: "file", path: "bin/busybox", content, mode: 0o755 },
    ...applets.map((name): TarEntry => ({ type: "symlink", path: `bin/${name}`, target: "busybox" })),
    { type: "symlink", path: "usr/bin/env", target: "../../bin/busybox" },
    file(
      "etc/passwd",
      "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    ),
    file("etc/group", "root:x:0:\nuser:x:1000:\nextra:x:2000:user\nnogroup:x:65534:\n"),
  ];
}

function file(path: string, text: string): TarEntry {
  return { type: "file", path, content: Buffer.from(text) };
}

async function readBusybox(): Promise<{ readonly path: string; readonly content: Buffer }> {
  for (const path of busyboxPaths) {
    try {
      return { path, content: await readFile(path) };
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
  throw new Error(
    `no busybox to make images from: looked for ${busyboxPaths.join(" and ")}; install it with "apt-get install busybox-static"`,
  );
}
