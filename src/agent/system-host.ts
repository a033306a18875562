import { stat } from "node:fs/promises";
import {
  canMountWithoutSwap,
  cgroupReader,
  claimDirectory,
  containerLogsDir,
  ensureDirectory,
  findSystemd,
  holdLockFile,
  isAppArmorEnabled,
  isSelinuxEnabled,
  KernelLog,
  LockFileHold,
  logindAccess,
  nodeAddresses,
  openMemoryAlarm,
  prepareDirectories,
  readCgroupLayout,
  readContainerFileLabel,
  readFileSystem,
  readHugePageSizes,
  readHugePages,
  readMachine,
  readMemoryOfMachine,
  readOomKills,
  readPidLimit,
  readSwaps,
  readTasks,
  readTopology,
  runTool,
  tuneKernel,
  tuneOwnProcess,
} from "../connections/host/index.ts";
import { servePodResources } from "../node/server/index.ts";
import { canControlSwap, hostProcesses, kernelCgroupFiles } from "../pod/resources/index.ts";
import { readResolvConf, readThermalThrottlePaths } from "../pod/runtime/index.ts";
import { nodeKinds } from "../pod/volumes/index.ts";
import type { Host, HostFacts } from "./inputs.ts";
import { openListeners } from "./listeners.ts";
import { openDevicePlugins } from "./open-device-plugins.ts";

async function readHostFacts(): Promise<HostFacts> {
  const [machine, cgroups, hugePages, hugePageSizes, thermalThrottlePaths, selinuxEnabled, appArmorEnabled, pidLimit] =
    await Promise.all([
      readMachine(),
      readCgroupLayout(),
      readHugePages(),
      readHugePageSizes(),
      readThermalThrottlePaths(),
      isSelinuxEnabled(),
      isAppArmorEnabled(),
      readPidLimit(),
    ]);
  return {
    machine,
    cgroups,
    hugePages,
    hugePageSizes,
    thermalThrottlePaths,
    selinuxEnabled,
    containerFileLabel: selinuxEnabled ? await readContainerFileLabel() : "",
    appArmorEnabled,
    canControlSwap: await canControlSwap(cgroups),
    pidLimit,
  };
}

/** The machine that this process runs on. */
export async function systemHost(): Promise<Host> {
  const facts = await readHostFacts();
  const lock = new LockFileHold();
  return {
    facts,
    readTopology: () => readTopology(),
    swaps: readSwaps,
    canMountWithoutSwap: () => canMountWithoutSwap(facts.machine.kernelVersion),
    holdLock: ({ flags }, ports) => holdLockFile(flags, ports, lock),
    async prepareDirectories({ kubelet, gates }, rootDir, log) {
      await ensureDirectory(rootDir, 0o750);
      const claim = await claimDirectory(rootDir);
      const checkpoints = gates.enabled("ContainerCheckpoint");
      await prepareDirectories({ rootDir, podLogsDir: kubelet.podLogsDir, checkpoints }, log);
      return claim;
    },
    tuneKernel: ({ kubelet, gates }, log) =>
      tuneKernel(
        { protect: kubelet.protectKernelDefaults, mayLackRights: gates.enabled("KubeletInUserNamespace") },
        log,
      ),
    tuneProcess: ({ kubelet }, ports) => tuneOwnProcess(kubelet, ports),
    listen: openListeners,
    openDevicePlugins,
    servePodResources,
    containerLogsDir,
    cgroupFiles: kernelCgroupFiles,
    processes: hostProcesses,
    findSystemd,
    logind: (busAddress) => logindAccess(busAddress),
    openKernelLog: () => KernelLog.open(),
    oomKills: () => readOomKills(),
    addresses: nodeAddresses,
    filesystemBytes: async (path) => (await readFileSystem(path)).capacityBytes,
    pressure: {
      cgroups: cgroupReader(facts.cgroups),
      hugePageBytes: () => readMemoryOfMachine()?.hugePageBytes ?? 0,
      tasks: readTasks,
      fileSystem: readFileSystem,
      device: async (path) => (await stat(path, { bigint: true })).dev,
      memoryAlarm: (path, tell) => openMemoryAlarm(facts.cgroups, path, tell),
    },
    resolvConf: readResolvConf,
    volumeKinds: nodeKinds,
    runTool,
  };
}
