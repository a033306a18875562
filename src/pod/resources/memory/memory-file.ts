import type { PodUid } from "../../../ground/model/index.ts";
import {
  asCheckpointObject,
  type CheckpointObject,
  goChecksum,
  goMap,
  goSlice,
  goStruct,
  inGoOrder,
  memberOf,
  textMember,
} from "../go-checkpoint.ts";
import type { BlocksByPod, MemoryBlock, MemoryByNode, MemoryState, MemoryTable, NumaMemory } from "./memory-state.ts";

/** What `memory_manager_state` says, in the kubelet's own form. */
export interface MemoryFile {
  readonly policy: string;
  readonly state: MemoryState;
}

/** The file can't be used; the message is the kubelet's. */
class MemoryFileError extends Error {
  override readonly name = "MemoryFileError";
}

export function encodeMemoryFile(policy: string, state: MemoryState): string {
  const nodes = [...state.machine].sort(([a], [b]) => a - b).map(([id, node]) => [id, nodeJson(node)] as const);
  const pods = inGoOrder(state.blocks).map(([uid, containers]) => {
    const blocks = inGoOrder(containers).map(([name, own]) => [name, own.map(blockJson)] as const);
    return [uid, Object.fromEntries(blocks)] as const;
  });
  return JSON.stringify({
    policyName: policy,
    machineState: Object.fromEntries(nodes),
    ...(pods.length === 0 ? {} : { entries: Object.fromEntries(pods) }),
    checksum: checksumOf(policy, state),
  });
}

function nodeJson({ assignments, group, tables }: NumaMemory) {
  const memoryMap = Object.fromEntries(
    inGoOrder(tables).map(([type, { total, systemReserved, allocatable, reserved, free }]) => [
      type,
      { total, systemReserved, allocatable, reserved, free },
    ]),
  );
  return { numberOfAssignments: assignments, memoryMap, cells: group };
}

function blockJson({ nodes, type, bytes }: MemoryBlock) {
  return { numaAffinity: nodes, type, size: bytes };
}

export function decodeMemoryFile(text: string): MemoryFile {
  try {
    const file = asCheckpointObject(JSON.parse(text), "the file");
    const policy = textMember(file, "policyName");
    const state = { machine: machineIn(file), blocks: blocksIn(file) };
    if (memberOf(file, "checksum") !== checksumOf(policy, state)) throw new MemoryFileError("checkpoint is corrupted");
    return { policy, state };
  } catch (error) {
    throw error instanceof MemoryFileError ? error : new MemoryFileError("checkpoint is corrupted", { cause: error });
  }
}

function machineIn(file: CheckpointObject): MemoryByNode {
  const nodes = Object.entries(asCheckpointObject(memberOf(file, "machineState") ?? {}, "machineState"));
  return new Map(
    nodes.map(([id, value]) => {
      const node = asCheckpointObject(value, `node ${id}`);
      const tables = Object.entries(asCheckpointObject(memberOf(node, "memoryMap") ?? {}, "memoryMap"));
      return [
        Number(id),
        {
          assignments: numberIn(node, "numberOfAssignments"),
          group: numbersIn(node, "cells"),
          tables: new Map(tables.map(([type, table]) => [type, tableIn(asCheckpointObject(table, type))])),
        },
      ] as const;
    }),
  );
}

function tableIn(table: CheckpointObject): MemoryTable {
  return {
    total: numberIn(table, "total"),
    systemReserved: numberIn(table, "systemReserved"),
    allocatable: numberIn(table, "allocatable"),
    reserved: numberIn(table, "reserved"),
    free: numberIn(table, "free"),
  };
}

function blocksIn(file: CheckpointObject): BlocksByPod {
  const pods = Object.entries(asCheckpointObject(memberOf(file, "entries") ?? {}, "entries"));
  return new Map(
    pods.map(([uid, containers]) => {
      const own = Object.entries(asCheckpointObject(containers, uid)).map(([name, list]) => {
        if (!Array.isArray(list)) throw new Error(`the blocks of container "${name}" are no list`);
        return [name, list.map((item: unknown) => blockIn(asCheckpointObject(item, name)))] as const;
      });
      return [uid as PodUid, new Map(own)] as const;
    }),
  );
}

function blockIn(block: CheckpointObject): MemoryBlock {
  return { nodes: numbersIn(block, "numaAffinity"), type: textMember(block, "type"), bytes: numberIn(block, "size") };
}

function numberIn(object: CheckpointObject, name: string): number {
  const value = memberOf(object, name) ?? 0;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw new Error(`"${name}" is ${JSON.stringify(value).slice(0, 40)}, wanted a number`);
}

function numbersIn(object: CheckpointObject, name: string): readonly number[] {
  const list = memberOf(object, name) ?? [];
  if (Array.isArray(list) && list.every((item) => Number.isInteger(item) && item >= 0)) return list as number[];
  throw new Error(`"${name}" is ${JSON.stringify(list).slice(0, 40)}, wanted numbers`);
}

function checksumOf(policy: string, { machine, blocks }: MemoryState): number {
  const nodes = [...machine].map(([id, { assignments, group, tables }]) => {
    const memory = [...tables].map(([type, table]) => [type, `<*>${tableText(table)}`] as const);
    const fields = goStruct({
      NumberOfAssignments: ["int", assignments],
      MemoryMap: ["map[v1.ResourceName]*state.MemoryTable", goMap(memory)],
      Cells: ["[]int", goSlice(group)],
    });
    return [id, `<*>${fields}`] as const;
  });
  const pods = [...blocks].map(([uid, containers]) => {
    const own = [...containers].map(([name, list]) => [name, goSlice(list.map(blockText))] as const);
    return [uid, goMap(own)] as const;
  });
  const value = goStruct({
    PolicyName: ["string", policy],
    MachineState: ["state.NUMANodeMap", goMap(nodes)],
    Entries: ["state.ContainerMemoryAssignments", goMap(pods)],
    Checksum: ["checksum.Checksum", 0],
  });
  return goChecksum(`(*state.MemoryManagerCheckpoint)${value}`);
}

function tableText({ total, systemReserved, allocatable, reserved, free }: MemoryTable): string {
  return goStruct({
    TotalMemSize: ["uint64", total],
    SystemReserved: ["uint64", systemReserved],
    Allocatable: ["uint64", allocatable],
    Reserved: ["uint64", reserved],
    Free: ["uint64", free],
  });
}

function blockText({ nodes, type, bytes }: MemoryBlock): string {
  return goStruct({
    NUMAAffinity: ["[]int", goSlice(nodes)],
    Type: ["v1.ResourceName", type],
    Size: ["uint64", bytes],
  });
}
