import { ContainerStats, PodSandboxStats } from "../../connections/cri/index.ts";
import type { ContainerRecord, SandboxRecord } from "./records.ts";

/** Usage as a runtime samples it at `now` (nanoseconds): steady, and none once the container has exited. */
export function containerStats({ id, config, life }: ContainerRecord, now: bigint): ContainerStats {
  const { metadata, labels, annotations } = config;
  const writableLayer = {
    timestamp: now,
    fsId: { mountpoint: "/" },
    usedBytes: { value: 4096n },
    inodesUsed: { value: 1n },
  };
  const attributes = { id, metadata, labels, annotations };
  if (life.step !== "running") return ContainerStats.fromPartial({ attributes, writableLayer });
  const usage = usageOf([life], now);
  return ContainerStats.fromPartial({ attributes, writableLayer, ...usage });
}

export function sandboxStats(
  { id, config }: SandboxRecord,
  containers: readonly ContainerRecord[],
  now: bigint,
): PodSandboxStats {
  const { metadata, labels, annotations } = config;
  const running = containers.flatMap(({ life }) => (life.step === "running" ? [life] : []));
  const none = { value: 0n };
  return PodSandboxStats.fromPartial({
    attributes: { id, metadata, labels, annotations },
    linux: {
      ...usageOf(running, now),
      network: {
        timestamp: now,
        defaultInterface: { name: "eth0", rxBytes: none, rxErrors: none, txBytes: none, txErrors: none },
      },
      process: { timestamp: now, processCount: { value: BigInt(running.length + 1) } },
      containers: containers.map((container) => containerStats(container, now)),
    },
  });
}

type Running = Extract<ContainerRecord["life"], { step: "running" }>;

function usageOf(running: readonly Running[], now: bigint) {
  let coreNanoSeconds = 0n;
  let nanoCores = 0n;
  let bytes = 0n;
  for (const { startedAt, usage } of running) {
    coreNanoSeconds += ((now - startedAt) * BigInt(usage.cpuMillicores)) / 1000n;
    nanoCores += BigInt(usage.cpuMillicores) * 1_000_000n;
    bytes += BigInt(usage.memoryBytes);
  }
  const memory = { value: bytes };
  return {
    cpu: { timestamp: now, usageCoreNanoSeconds: { value: coreNanoSeconds }, usageNanoCores: { value: nanoCores } },
    memory: { timestamp: now, workingSetBytes: memory, usageBytes: memory, rssBytes: memory },
  };
}
