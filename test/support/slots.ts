import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  identify,
  isRunning,
  layoutOf,
  type ProcessIdentity,
  removeMachine,
} from "../../src/beside/cli/machine/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";

/** Test machines live here, each in a numbered slot that names its owner, so that any later run finds the abandoned. */
const slotsDir = "/var/lib/nodelet-test";
// The other half of the subnets is left to machines started by people.
const slotCount = 128;

export interface Slot {
  readonly number: number;
  readonly directory: string;
  /** State directory of the slot's machine. */
  readonly machineDir: string;
}

/** Takes a free slot for this process. */
export async function claimSlot(): Promise<Slot> {
  await mkdir(slotsDir, { recursive: true, mode: 0o711 });
  // Moving a filled directory into place claims the slot and names its owner in one step.
  const draft = join(slotsDir, `draft-${randomUUID()}`);
  await mkdir(draft);
  await writeOwner(draft, "owner.json");
  for (let number = 0; number < slotCount; number++) {
    try {
      const slot = slotAt(number);
      await rename(draft, slot.directory);
      return slot;
    } catch (error) {
      if (!hasCode(error, "ENOTEMPTY") && !hasCode(error, "EEXIST")) throw error;
    }
  }
  await rm(draft, { recursive: true });
  throw new Error(`all ${slotCount} test machines are in use; see ${slotsDir}`);
}

export async function releaseSlot(slot: Slot): Promise<void> {
  const { machineDir, directory } = slot;
  await removeMachine(layoutOf(machineDir), { graceMs: 0, report: () => {} }, systemClock);
  await rm(directory, { recursive: true, force: true });
}

/** Removes the machines of test processes that have ended without doing so. Returns how many there were. */
export async function sweepSlots(): Promise<number> {
  let swept = 0;
  for (const name of await readdir(slotsDir).catch(() => [])) {
    if (!/^\d+$/.test(name)) continue;
    const slot = slotAt(Number(name));
    if (await sweepSlot(slot)) swept++;
  }
  return swept;
}

/** Removes the slot's machine if its owner has ended and nobody else is about to. */
export async function sweepSlot(slot: Slot): Promise<boolean> {
  if (await isOwned(slot.directory, "owner.json")) return false;
  if (await isOwned(slot.directory, "sweeper.json", process.pid)) return false;
  if (!(await writeOwner(slot.directory, "sweeper.json"))) return false;
  await releaseSlot(slot);
  return true;
}

export function slotAt(number: number): Slot {
  const directory = join(slotsDir, String(number));
  return { number, directory, machineDir: join(directory, "m") };
}

/** Whether a process other than `but` has its name in the file and runs. */
async function isOwned(directory: string, file: string, but?: number): Promise<boolean> {
  try {
    const owner: ProcessIdentity = JSON.parse(await readFile(join(directory, file), "utf8"));
    return owner.pid !== but && (await isRunning(owner));
  } catch {
    return false;
  }
}

async function writeOwner(directory: string, file: string): Promise<boolean> {
  try {
    await writeFile(join(directory, file), JSON.stringify(await identify(process.pid)));
    return true;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return false;
    throw error;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
