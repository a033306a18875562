import type { FileSystemUsage, MemoryAlarm, MemoryUsage } from "../../../connections/host/index.ts";

/** Port: the figures of the machine that pressure is seen by. What returns no promise never waits. */
export interface PressureSources {
  readonly cgroups: {
    exists(path: string): boolean;
    children(path: string): readonly string[];
    memory(path: string): MemoryUsage | undefined;
    tasks(path: string): number | undefined;
  };
  /** Memory that is set aside for huge pages, and can be used for nothing else; may change at any time. */
  readonly hugePageBytes: () => number;
  /** Processes and threads of the machine, and how many there can be. */
  readonly tasks: () => { readonly running: number; readonly limit: number } | undefined;
  /** How full the file system is that holds the path. */
  readonly fileSystem: (path: string) => Promise<FileSystemUsage>;
  /** By what file systems are told apart. */
  readonly device: (path: string) => Promise<bigint>;
  /** Tells when the memory of a cgroup, or of the machine ("/"), gets short. Rejects where nobody can. */
  readonly memoryAlarm: (path: string, tell: () => void) => Promise<MemoryAlarm>;
}
