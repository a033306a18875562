import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { claimDirectory } from "../connections/host/index.ts";
import { type Clock, isThere, type Logger, onAbort, type TaskScope } from "../ground/base/index.ts";
import { type ConfigIo, describeChangeEffect, type KubeletFlags, type SettingChange } from "../ground/config/index.ts";
import type { ShownRollout } from "../node/metrics/index.ts";
import type { NodeConfigFacts } from "../node/object/index.ts";
import {
  AssignedConfig,
  type ConfigApi,
  ConfigKeeper,
  configMapRefOf,
  describeSource,
  guardedIo,
  keepOldMeta,
  nodeConfigReport,
  type ReadVersion,
  type RolloutReport,
  RolloutStore,
  readOldNotes,
  readVersion,
  refuseShared,
  systemDisk,
  TrialGuard,
  TrialWatch,
  type Turn,
  type VersionSource,
  WatchedFiles,
  warnOfIdleSource,
} from "../node/rollout/index.ts";
import type { RolloutDesk } from "../node/server/index.ts";

interface RolloutInputs {
  readonly argv: readonly string[];
  readonly flags: KubeletFlags;
  readonly io: ConfigIo;
  readonly uid: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Who decides which configuration the agent runs with, and what comes with it. */
export interface Rollout {
  readonly keeper: ConfigKeeper;
  readonly desk: RolloutDesk;
  /** What the Node says of the configuration. */
  nodeReport(): NodeConfigFacts | undefined;
  /** For the metrics. */
  shown(): ShownRollout;
  /** Looks after the trial, if this turn is one, for as long as it lives. */
  attend(turn: Turn, scope: TaskScope): void;
  /** Takes over changes, for as long as the turn lives. */
  follow(turn: Turn, scope: TaskScope): void;
}

/** Opens what was noted of configurations. Only one process at a time may write there. */
export async function openRollout(inputs: RolloutInputs): Promise<Rollout> {
  const { argv, flags, io, clock, log } = inputs;
  const isFollowed = flags.dynamicConfigDir !== "";
  const rootDir = resolve(io.cwd, flags.rootDir);
  const directory = isFollowed ? resolve(io.cwd, flags.dynamicConfigDir) : join(rootDir, "nodelet", "config");
  if (isFollowed) await mkdir(directory, { recursive: true, mode: 0o700 });
  if (await isThere(directory)) {
    await refuseShared(directory, { uid: inputs.uid, podsDirs: [join(rootDir, "pods")] });
    // Kept until the process ends, however it ends.
    await claimDirectory(directory);
  }
  const store = new RolloutStore(directory, systemDisk);
  const assignedBy =
    isFollowed && flags.kubeconfig !== "" ? ([flags.dynamicConfigMap === "" ? "node" : "flag"] as const) : [];
  const settings = { argv, isFollowed, trialMs: flags.dynamicConfigTrialMs, assignedBy };
  const oldNotes = () => readOldNotes(directory, systemDisk);
  const keeper = new ConfigKeeper(settings, { store, oldNotes, io, clock, log });
  await keeper.open();
  const guard = new TrialGuard(directory, log);
  return {
    keeper,
    desk: deskOf(keeper),
    nodeReport: () => nodeConfigReport(keeper.report),
    shown: () => shownRollout(keeper.report),
    attend: (turn, scope) => {
      keeper.attend(turn);
      const trials = new TrialWatch(keeper, clock, guard);
      scope.spawn("trial of the configuration", (signal) => trials.run(signal));
    },
    follow: (turn, scope) =>
      follow(turn, scope, { ...inputs, keeper, directory, isFollowed, podsDir: join(rootDir, "pods") }),
  };
}

interface Attendance extends RolloutInputs {
  readonly keeper: ConfigKeeper;
  readonly directory: string;
  readonly isFollowed: boolean;
  readonly podsDir: string;
}

/** Starts what takes over changes; all of it ends with the scope. */
function follow(turn: Turn, scope: TaskScope, parts: Attendance): void {
  const { keeper, isFollowed } = parts;
  const stop = keeper.changed.on(turn.onReport);
  onAbort(scope.signal, stop);
  if (!isFollowed) {
    if (turn.api !== undefined) warnOfIdleSource(turn.api, parts.log);
    return;
  }
  const files = watchedFiles(parts);
  scope.spawn("configuration files", (signal) => files.run(signal));
  scope.spawn("old notes of the configuration", (signal) =>
    keepOldMeta(parts.directory, { ...parts, disk: systemDisk }, signal),
  );
  const { api } = turn;
  if (api !== undefined) scope.spawn("configuration of the API", (signal) => followApi(turn, api, parts, signal));
}

async function followApi(turn: Turn, api: ConfigApi, parts: Attendance, signal: AbortSignal): Promise<void> {
  const { flags, clock, log, keeper, directory } = parts;
  // The way to the API server opens with the last stage of the start.
  while (turn.stage() !== undefined) await clock.sleep(startedEveryMs, signal);
  const ports = { api, keeper, disk: systemDisk, directory, clock, log, random: Math.random };
  await new AssignedConfig(configMapRefOf(flags.dynamicConfigMap), ports).run(signal);
}

const startedEveryMs = 500;

function shownRollout(report: RolloutReport | undefined): ShownRollout {
  const shown = (version: { readonly source: VersionSource } | undefined) => {
    if (version === undefined) return undefined;
    const { source } = version;
    if (source.from !== "configMap") return { source: describeSource(source), uid: "", resourceVersion: "", key: "" };
    return { ...source, source: describeSource(source) };
  };
  return {
    // Where no config map is wanted, the files are; older kubelets call that local.
    assigned: shown(report?.assigned ?? (report && { source: { from: "files" } })),
    active: shown(report?.active),
    lastKnownGood: shown(report?.good),
    hasError: report !== undefined && report.error !== "",
  };
}

function watchedFiles({ argv, flags, io, uid, clock, log, podsDir, keeper }: Attendance): WatchedFiles {
  const guarded = guardedIo(io, { uid, podsDirs: [podsDir] });
  const absolute = (path: string): string => (path === "" ? "" : resolve(io.cwd, path));
  const places = { configFile: absolute(flags.configFile), configDir: absolute(flags.configDir) };
  const read = (): Promise<ReadVersion> => readVersion(argv, { source: { from: "files" }, words: [] }, guarded);
  return new WatchedFiles(places, { read, propose: (found) => keeper.proposeFiles(found), clock, log });
}

function deskOf(keeper: ConfigKeeper): RolloutDesk {
  return {
    report: () => keeper.report,
    compare: async (file) => ({ changes: (await keeper.compare(file)).map(shownChange) }),
    async tryOut(file) {
      const { version, changes, effect, begin } = await keeper.tryOut(file);
      return { answer: { version: version.id, effect, changes: changes.map(shownChange) }, begin };
    },
    keep: () => keeper.keep(),
    back: () => keeper.back(),
  };
}

function shownChange({ name, from, to, effect }: SettingChange): object {
  return { name, from, to, when: describeChangeEffect(effect) };
}
