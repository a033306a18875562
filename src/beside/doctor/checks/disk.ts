import { parseEvictionThreshold } from "../../../ground/config/index.ts";
import { tryParseQuantity, wholeUnits } from "../../../ground/model/index.ts";
import {
  type Check,
  failed,
  fileSource,
  type Judgement,
  notApplicable,
  passed,
  sourceOf,
  unknown,
  warned,
} from "../check.ts";
import { type ConfigFacts, type Facts, known, setting } from "../facts.ts";
import type { FileSystemFact } from "../gather/disk.ts";
import { bytes, stretch } from "./amounts.ts";

const soonSeconds = 86_400;

export const diskChecks: readonly Check[] = [
  {
    id: "disk.space",
    title: "There is room before pods are evicted",
    why: "below the threshold the node removes images, then pods",
    look: (facts) =>
      roomFor(
        facts,
        "nodefs.available",
        ({ availableBytes }) => availableBytes,
        ({ capacityBytes }) => capacityBytes,
        bytes,
      ),
  },
  {
    id: "disk.inodes",
    title: "There are inodes before pods are evicted",
    why: "many small files use up a disk that looks half empty",
    look: (facts) =>
      roomFor(
        facts,
        "nodefs.inodesFree",
        ({ inodesFree }) => inodesFree,
        ({ inodes }) => inodes,
        String,
      ),
  },
  {
    id: "disk.read-only",
    title: "The node's disks can be written to",
    why: "the kernel makes a disk read-only when it finds it broken",
    look: (facts) => {
      const { readOnly } = known(facts.disk);
      if (readOnly.length === 0) return passed("root directory and logs are on disks that can be written to");
      return failed(
        `read-only: ${readOnly.join(", ")}`,
        `dmesg | grep -i error   says why; then: mount -o remount,rw ${readOnly[0]}`,
      );
    },
  },
  {
    id: "disk.orphans",
    title: "No directories of gone pods are left",
    why: "they hold disk space, and perhaps mounts",
    look: (facts) => {
      const { orphans } = known(facts.disk);
      if (orphans === undefined) return notApplicable("only a running agent knows its pods");
      const [first] = orphans;
      if (first === undefined) return passed("every directory belongs to a pod");
      return warned(
        `${orphans.length} directories belong to no pod, such as ${first}`,
        "nodelet gc --dry-run --pods   says what keeps them; the agent's log says why",
        fileSource(first),
      );
    },
  },
  {
    id: "disk.log-rotation",
    title: "Logs of containers are kept small",
    why: "one container that writes much would fill the disk of all",
    look: (facts) => {
      const { logs } = known(facts.disk);
      const limit = setting(known(facts.config), "containerLogMaxSize");
      const most = quantity(logs.maxSize);
      const seen = `containerLogMaxSize is ${logs.maxSize}, ${logs.maxFiles} files`;
      const agent = "value" in facts.agent ? facts.agent.value : undefined;
      if (logs.problem !== undefined) return unknown(`${seen}; ${logs.problem}`, "run the doctor as root");
      if (logs.largest === undefined || most === undefined) return passed(seen, sourceOf(limit.origin));
      // Rotation looks every ten seconds: a fast writer may be beyond the limit meanwhile.
      if (logs.largest.bytes <= 3 * most)
        return passed(`${seen}; the largest log has ${bytes(logs.largest.bytes)}`, sourceOf(limit.origin));
      const fix =
        agent?.state === "running"
          ? "see the agent's log: rotation of this file fails"
          : "start the agent: it rotates logs";
      return warned(
        `${seen}, but ${logs.largest.path} has ${bytes(logs.largest.bytes)}`,
        fix,
        fileSource(logs.largest.path),
      );
    },
  },
];

function roomFor(
  facts: Facts,
  signal: string,
  left: (fileSystem: FileSystemFact) => number,
  whole: (fileSystem: FileSystemFact) => number,
  shown: (amount: number) => string,
): Judgement {
  const nodefs = known(facts.disk).fileSystems.find(({ use }) => use === "nodefs");
  if (nodefs === undefined) return unknown("the root directory is not there yet");
  // Some file systems have no such limit.
  if (whole(nodefs) === 0) return notApplicable(`${nodefs.path}: this file system does not count them`);
  const config = known(facts.config);
  const threshold = thresholdOf(config, signal, whole(nodefs));
  const evictionHard = setting(config, "evictionHard");
  const source = sourceOf(evictionHard.keyOrigins[signal] ?? evictionHard.origin);
  const now = left(nodefs);
  const seen = `${shown(now)} of ${shown(whole(nodefs))} left below ${nodefs.path}`;
  const fix = "nodelet gc --dry-run   says what could go; make room or enlarge the disk";
  if (threshold === undefined)
    return now / whole(nodefs) < 0.05 ? warned(`${seen}; no threshold is set`, fix) : passed(seen);
  const beyond = `${seen}; pods are evicted below ${shown(threshold)}`;
  if (now < threshold) return failed(beyond, fix, source);
  const rate = signal === "nodefs.available" ? nodefs.lossPerSecond : undefined;
  if (rate !== undefined && rate > 0) {
    const until = (now - threshold) / rate;
    const foretold = `${beyond}, at the rate of the last hours in ${stretch(until)}`;
    return until < soonSeconds ? warned(foretold, fix, source) : passed(foretold, source);
  }
  return passed(beyond, source);
}

function thresholdOf(config: ConfigFacts, signal: string, whole: number): number | undefined {
  const map = setting(config, "evictionHard").value as Readonly<Record<string, string>> | undefined;
  const written = map?.[signal];
  if (written === undefined) return undefined;
  const amount = parseEvictionThreshold(written);
  if (amount === "off") return undefined;
  return "fraction" in amount ? amount.fraction * whole : Number(wholeUnits(amount.quantity));
}

/** `10Mi` and the like; undefined: it is none. */
function quantity(written: string): number | undefined {
  const parsed = tryParseQuantity(written);
  return parsed === undefined ? undefined : Number(wholeUnits(parsed));
}
