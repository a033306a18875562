import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LevelDisk } from "../../../src/beside/localapi/store/level-disk.ts";
import { acknowledgedFile, acknowledgedIn } from "./churn.ts";
import type { VirtualMachine } from "./machine.ts";
import { runProgram } from "./program.ts";
import { judgeStateFiles, type StateFilesReport } from "./state-files.ts";

export interface DiskReport extends StateFilesReport {
  /** What the API server had acknowledged. */
  readonly objects: number;
}

/** What a power cut now would leave, read on the host: as many moments as one likes, and no boot for any of them. */
export async function diskReport(machine: VirtualMachine, survives: () => boolean): Promise<DiskReport> {
  const directory = await mkdtemp(join(tmpdir(), "nodelet-vm-disk-"));
  try {
    await machine.withDiskAfterCut(survives, (disk) => unpack(disk, directory));
    const { problems, ...judged } = await judgeStateFiles(directory);
    const acknowledged = acknowledgedIn(await readFile(join(directory, "acknowledged"), "utf8"));
    const stored = await storedIn(join(directory, "nodelet-api/objects"));
    const lost = acknowledged.filter((object) => !stored.has(object)).map((object) => `${object} was acknowledged`);
    return { ...judged, problems: [...problems, ...lost], objects: acknowledged.length };
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** Only of what the agent keeps. */
export async function agentFilesReport(machine: VirtualMachine, survives: () => boolean): Promise<StateFilesReport> {
  const directory = await mkdtemp(join(tmpdir(), "nodelet-vm-disk-"));
  try {
    await machine.withDiskAfterCut(survives, async (disk) => {
      await mend(disk);
      await runProgram("debugfs", ["-R", `rdump /var/lib/kubelet ${directory}`, disk]);
    });
    return await judgeStateFiles(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function unpack(disk: string, directory: string): Promise<void> {
  await mend(disk);
  const lookIn = (command: string): Promise<string> => runProgram("debugfs", ["-R", command, disk]);
  await mkdir(directory, { recursive: true });
  await lookIn(`rdump /var/lib/kubelet /var/lib/nodelet-api ${directory}`);
  await lookIn(`dump ${acknowledgedFile} ${join(directory, "acknowledged")}`);
}

/** Replays the file system's journal, as the machine would; 1: something was mended. */
async function mend(disk: string): Promise<void> {
  await runProgram("sh", ["-c", 'e2fsck -p "$1" || [ $? = 1 ]', "sh", disk]);
}

async function storedIn(directory: string): Promise<ReadonlySet<string>> {
  const { disk, state } = await LevelDisk.open(directory);
  await disk.close();
  return new Set(
    [...state.objects].map(({ object }) => `${String(object.kind).toLowerCase()}s ${object.metadata.name}`),
  );
}
