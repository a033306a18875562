import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { VirtualMachine } from "./machine.ts";

const directory = "/mnt/saved";
const disk = "/dev/vdd";
/** Written without a file system. */
const rawDisk = "/dev/vde";
const contents = { private: "private ", replaced: "new " };
const variants = ["saved", "unsynced"] as const;

/**
 * Has src/ground/base/saved-file.ts save files on a disk of their own, where nobody else's syncs help: once as it is and once
 * with every sync taken out. The power must be cut right after.
 */
export async function saveFiles(machine: VirtualMachine): Promise<void> {
  const source = await bundledSaver();
  await machine.run(`mkfs.ext4 -q ${disk} && mkdir -p ${directory} && mount -o commit=600 ${disk} ${directory}`);
  await machine.run("sysctl -q vm.dirty_writeback_centisecs=0 && sync");
  for (const variant of variants) {
    const text = variant === "saved" ? source : source.replaceAll(/await \w+\.sync\(\)/g, "await undefined");
    if (variant !== "saved" && text === source) throw new Error("found no sync to take out of saved-file.ts");
    await machine.putFile(`/root/${variant}.mjs`, text);
    await machine.putFile(`/root/save-${variant}.mjs`, saver(variant));
  }
  const raw = `yes | dd of=${rawDisk} bs=4096 count=16 iflag=fullblock oflag=direct status=none`;
  const saving = variants.map((variant) => `node /root/save-${variant}.mjs`);
  // Both are past the machine's own cache; the disk is asked to flush only the first.
  await machine.run([`${raw} conv=fsync`, `${raw} seek=16`, ...saving].join(" && "));
}

/** Which of the files and blocks are there, whole, after the power came back. */
export async function savedFiles(machine: VirtualMachine): Promise<Readonly<Record<string, boolean>>> {
  await machine.run(`mount ${disk} ${directory}`);
  const isThere = async (skip: number): Promise<boolean> => {
    const raw = `dd if=${rawDisk} bs=4096 count=16 skip=${skip} status=none | tr -d '\\n' | tr -d y | wc -c`;
    return (await machine.run(raw)) === "0";
  };
  const found: Record<string, boolean> = { "flushed block": await isThere(0), "unflushed block": await isThere(16) };
  for (const variant of variants) {
    for (const [name, word] of Object.entries(contents)) {
      const { output } = await machine.attempt(`cat ${directory}/${variant}/${name}`);
      found[`${variant} ${name}`] = output === word.repeat(1000);
    }
  }
  return found;
}

function saver(variant: string): string {
  const path = `${directory}/${variant}`;
  return `
    import { saveFile, savePrivateFile } from "/root/${variant}.mjs";
    await savePrivateFile("${path}/private", "${contents.private}".repeat(1000));
    await saveFile("${path}/replaced", "old ".repeat(1000), 0o644);
    await saveFile("${path}/replaced", "${contents.replaced}".repeat(1000), 0o644);`;
}

async function bundledSaver(): Promise<string> {
  const entry = fileURLToPath(new URL("../../../src/ground/base/saved-file.ts", import.meta.url));
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    write: false,
  });
  return outputFiles[0]?.text ?? "";
}
