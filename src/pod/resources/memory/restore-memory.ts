import { messageOf } from "../../../ground/base/index.ts";
import type { FindRunning } from "../running-containers.ts";
import { decodeMemoryFile, type MemoryFile } from "./memory-file.ts";
import { breaksGroups } from "./memory-hints.ts";
import { type MemoryBlock, type MemoryByNode, type MemoryState, taken, withBlocks } from "./memory-state.ts";

export interface RestoredMemory {
  readonly state: MemoryState;
  /** Why what was kept could not be used as it was; undefined: it could. */
  readonly mended: string | undefined;
}

/** What was kept does not fit, and somebody who runs would lose memory over it. */
class MemoryRestoreError extends Error {
  override readonly name = "MemoryRestoreError";
}

export interface MemoryRestorer {
  readonly path: string;
  /** What the nodes have while nobody has anything; undefined: the policy is "None". */
  readonly fresh: MemoryByNode | undefined;
  readonly findRunning: FindRunning;
}

/** Who has memory of which nodes, from what was left; see `restoreCpus`, whose rules these are. */
export async function restoreMemory(text: string | undefined, restorer: MemoryRestorer): Promise<RestoredMemory> {
  const fresh: MemoryState = { machine: restorer.fresh ?? new Map(), blocks: new Map() };
  if (text === undefined) return { state: fresh, mended: undefined };
  let file: MemoryFile;
  try {
    file = decodeMemoryFile(text);
  } catch (error) {
    const cause = messageOf(error);
    if ((await restorer.findRunning()).areAny) throw refusal(atCheckpoint(cause, restorer));
    return { state: fresh, mended: cause };
  }
  const problem = problemOf(file, restorer);
  if (problem !== undefined) return { state: await mend(file.state, problem, restorer), mended: problem };
  const isNew = restorer.fresh === undefined || file.state.machine.size === 0;
  return { state: isNew ? fresh : file.state, mended: undefined };
}

function problemOf({ policy, state }: MemoryFile, restorer: MemoryRestorer): string | undefined {
  const configured = restorer.fresh === undefined ? "None" : "Static";
  if (policy !== configured) {
    const what = `configured policy "${configured}" differs from state checkpoint policy ${JSON.stringify(policy)}`;
    return atCheckpoint(`[memorymanager] ${what}`, restorer);
  }
  if (restorer.fresh === undefined) return undefined;
  if (state.machine.size === 0) {
    if (state.blocks.size === 0) return undefined;
    return "[memorymanager] machine state can not be empty when it has memory assignments";
  }
  let expected = restorer.fresh;
  for (const { uid, name, block } of allBlocks(state)) {
    const whose = `(pod: ${uid}, container: ${name}) the memory assignment uses`;
    for (const id of block.nodes) {
      const node = expected.get(id);
      if (node === undefined) return `[memorymanager] ${whose} the NUMA that does not exist`;
      if (!node.tables.has(block.type)) return `[memorymanager] ${whose} memory resource that does not exist`;
    }
    expected = taken(expected, block);
  }
  if (areAlike(state.machine, expected)) return undefined;
  return "[memorymanager] the expected machine state is different from the real one";
}

function allBlocks({ blocks }: MemoryState) {
  return [...blocks].flatMap(([uid, containers]) =>
    [...containers].flatMap(([name, own]) => own.map((block) => ({ uid, name, block }))),
  );
}

/** What is left is compared by groups: within one, memory may have been given back elsewhere than it was taken. */
function areAlike(found: MemoryByNode, expected: MemoryByNode): boolean {
  if (found.size !== expected.size) return false;
  return [...found].every(([id, node]) => {
    const other = expected.get(id);
    if (other === undefined || node.assignments !== other.assignments || node.tables.size !== other.tables.size) {
      return false;
    }
    if (String(node.group.toSorted()) !== String(other.group.toSorted())) return false;
    return [...node.tables].every(([type, table]) => {
      const wanted = other.tables.get(type);
      const sum = (machine: MemoryByNode, amount: "free" | "reserved"): number =>
        node.group.reduce((total, member) => total + (machine.get(member)?.tables.get(type)?.[amount] ?? 0), 0);
      return (
        wanted !== undefined &&
        (["total", "systemReserved", "allocatable"] as const).every((amount) => table[amount] === wanted[amount]) &&
        (["free", "reserved"] as const).every((amount) => sum(found, amount) === sum(expected, amount))
      );
    });
  });
}

/** Gives everybody again what he had, as far as the nodes still have it; those that run come first. */
async function mend(found: MemoryState, problem: string, restorer: MemoryRestorer): Promise<MemoryState> {
  let state: MemoryState = { machine: restorer.fresh ?? new Map(), blocks: new Map() };
  if (found.blocks.size === 0) return state;
  const running = await restorer.findRunning();
  const containers = [...found.blocks].flatMap(([uid, own]) =>
    [...own].map(([name, blocks]) => ({ uid, name, blocks, isRunning: running.has(uid, name) })),
  );
  for (const { uid, name, blocks, isRunning } of containers.sort((a, b) => Number(b.isRunning) - Number(a.isRunning))) {
    if (blocks.every((block) => fits(state.machine, block))) {
      state = withBlocks({ ...state, machine: blocks.reduce(taken, state.machine) }, uid, name, blocks);
    } else if (isRunning) throw refusal(problem);
  }
  return state;
}

function fits(machine: MemoryByNode, { nodes, type, bytes }: MemoryBlock): boolean {
  if (nodes.length === 0 || !nodes.every((id) => machine.get(id)?.tables.has(type))) return false;
  if (breaksGroups(machine, nodes)) return false;
  return nodes.reduce((sum, id) => sum + (machine.get(id)?.tables.get(type)?.free ?? 0), 0) >= bytes;
}

function atCheckpoint(cause: string, { path }: MemoryRestorer): string {
  const file = `delete the memory manager checkpoint file "${path}"`;
  return `could not restore state from checkpoint: ${cause}, please drain this node and ${file} before restarting Kubelet`;
}

function refusal(problem: string): MemoryRestoreError {
  return new MemoryRestoreError(`start memory manager error: ${problem}`);
}
