import type { ContainerConfig, LinuxContainerResources, PodSandboxConfig } from "../../connections/cri/index.ts";
import type { SimulatedUsage } from "./behaviour.ts";
import type { FakeProcess } from "./fake-process.ts";
import type { StoredImage } from "./image-store.ts";
import type { LogFile } from "./log-file.ts";

/** What the runtime knows of a sandbox. Times are nanoseconds since 1970. */
export interface SandboxRecord {
  readonly id: string;
  readonly config: PodSandboxConfig;
  readonly runtimeHandler: string;
  readonly createdAt: bigint;
  state: "ready" | "notReady";
  /** undefined on the node's own network, and once the network is torn down. */
  ip: string | undefined;
}

// created -> running -> exited        created -> exited when it cannot start
export type SimulatedLife =
  | { readonly step: "created" }
  | {
      readonly step: "running";
      readonly startedAt: bigint;
      readonly process: FakeProcess;
      readonly usage: SimulatedUsage;
    }
  | {
      readonly step: "exited";
      /** 0 when it never ran. */
      readonly startedAt: bigint;
      readonly finishedAt: bigint;
      readonly exitCode: number;
      readonly reason: string;
      readonly message: string;
    };

export interface ContainerRecord {
  readonly id: string;
  readonly sandbox: SandboxRecord;
  readonly config: ContainerConfig;
  readonly image: StoredImage;
  readonly createdAt: bigint;
  readonly log: LogFile;
  readonly logPath: string;
  resources: LinuxContainerResources | undefined;
  life: SimulatedLife;
  /** Resolved by its exit; whoever stops it waits here. */
  readonly exited: Set<() => void>;
}
