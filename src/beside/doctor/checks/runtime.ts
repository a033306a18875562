import {
  type Check,
  failed,
  type Judgement,
  notApplicable,
  passed,
  shellWord,
  sourceOf,
  unknown,
  warned,
} from "../check.ts";
import { type Facts, known, setting } from "../facts.ts";
import type { ExaminedRuntime } from "../gather/runtime.ts";
import { bytes } from "./amounts.ts";

type Answering = Extract<ExaminedRuntime, { readonly state: "answers" }>;

const firstThatPins = [1, 6, 22];

export const runtimeChecks: readonly Check[] = [
  {
    id: "runtime.answers",
    title: "The container runtime answers",
    why: "without it no pod starts and none can be stopped",
    look: (facts) => {
      const runtime = known(facts.runtime);
      const source = sourceOf(setting(known(facts.config), "containerRuntimeEndpoint").origin);
      if (runtime.state === "silent" && runtime.isDenied) {
        return unknown(`${runtime.endpoint} answers root only`, "run the doctor as root");
      }
      if (runtime.state === "silent") {
        return failed(
          `${runtime.endpoint}: ${runtime.problem}`,
          "systemctl status containerd   then start it, or give the right containerRuntimeEndpoint",
          source,
        );
      }
      return passed(
        `${runtime.name} ${runtime.version} at ${runtime.endpoint} answered in ${Math.round(runtime.tookMs)} ms`,
        source,
      );
    },
  },
  {
    id: "runtime.version",
    title: "The runtime's release is one to rely on",
    why: "faults that were mended long ago are still in old releases, and the kubelet will refuse them",
    look: answering(versionIsCurrent),
  },
  {
    id: "runtime.ready",
    title: "The runtime and its pod network are ready",
    why: "pods wait until both are",
    look: answering(({ conditions }) => {
      const waiting = conditions.filter(({ status }) => !status);
      if (conditions.length === 0) return unknown("the runtime names no conditions");
      if (waiting.length === 0) return passed(conditions.map(({ type }) => type).join(", "));
      const shown = waiting.map(({ type, message }) => `${type} is false: ${message}`).join("; ");
      return failed(
        shown,
        "for NetworkReady: install a network plugin (a file below /etc/cni/net.d); for RuntimeReady see the runtime's log",
      );
    }),
  },
  {
    id: "runtime.cgroup-driver",
    title: "Agent and runtime use the same cgroup driver",
    why: "two masters of the same cgroups lose limits and kill pods under load",
    look: answering(driversAgree),
  },
  {
    id: "runtime.sandbox-image",
    title: "The sandbox image is there and pinned",
    why: "when it is removed, no pod starts until it can be pulled again",
    look: answering(({ sandboxImage, endpoint, name: runtime, version }) => {
      if (sandboxImage === undefined) return notApplicable("the runtime does not say which image it uses");
      const { name, isThere, isPinned } = sandboxImage;
      const image = shellWord(name);
      if (!isThere) {
        const pull = `crictl --runtime-endpoint ${shellWord(endpoint)} pull ${image}`;
        return warned(`${name} is not there; the first pod pulls it`, pull);
      }
      if (!isPinned && runtime === "containerd" && isBefore(numbersOf(version), firstThatPins)) {
        return passed(`${name} is there; this release can't pin images, and the agent removes all but this one`);
      }
      if (!isPinned) {
        const ctr = `ctr --address ${shellWord(endpoint.replace(/^unix:\/\//, ""))} -n k8s.io`;
        return warned(
          `${name} is there but not pinned`,
          `${ctr} images label ${image} io.cri-containerd.pinned=pinned`,
        );
      }
      return passed(`${name} is there and pinned`);
    }),
  },
  {
    id: "runtime.cni",
    title: "A network is configured, and its plugins are installed",
    why: "a pod's network is made by them",
    look: answering(({ cni }) => {
      if (cni === undefined) return notApplicable("the runtime does not say where it looks for networks");
      const { configDir, configs, missingPlugins, binDirs } = cni;
      const [first] = configs;
      if (first === undefined)
        return failed(
          `${configDir} holds no configuration`,
          "install a network plugin; only pods of the host's network run without",
        );
      if (missingPlugins.length === 0) return passed(`${configDir}/${first}`);
      return failed(
        `${configDir}/${first} wants ${missingPlugins.join(", ")}, which ${binDirs.join(", ")} does not have`,
        "apt install containernetworking-plugins, or install the network's own plugins",
      );
    }),
  },
  {
    id: "runtime.events",
    title: "The runtime tells of events",
    why: "without events, the end of a container is noticed only by asking",
    look: answering(({ offersEvents, name }) => {
      if (offersEvents === undefined) return unknown("it could not be told");
      if (offersEvents) return passed("CRI events are offered");
      if (name === "containerd") return passed("no CRI events; the agent listens to containerd's own");
      return warned(
        "the runtime offers no events: the agent looks every few seconds",
        "use a release of the runtime with CRI events",
      );
    }),
  },
  {
    id: "runtime.shims",
    title: "No shim is left behind",
    why: "it holds memory, mounts and perhaps the processes of a pod that nobody knows any more",
    look: answering(({ strayShims }) => {
      if (strayShims.length === 0) return passed("every shim belongs to a sandbox");
      const shown = strayShims.slice(0, 3).join(", ");
      return warned(
        `${strayShims.length} shims have no sandbox: ${shown}`,
        "ps -ef | grep containerd-shim   then end those that are named, by their pid",
      );
    }),
  },
  {
    id: "runtime.disk",
    title: "There is room for images",
    why: "pulls fail, and the node removes images and evicts pods when its disk is full",
    look: answering(({ imageDisk }) => {
      if (imageDisk === undefined) return unknown("the runtime does not say where it keeps images");
      const { path, availableBytes, capacityBytes } = imageDisk;
      const share = availableBytes / capacityBytes;
      const seen = `${bytes(availableBytes)} of ${bytes(capacityBytes)} left below ${path}`;
      if (share < 0.05)
        return failed(seen, "nodelet gc --dry-run --images   says what could go; make room or enlarge the disk");
      return share < 0.15 ? warned(seen, "nodelet gc --dry-run --images   says what could go") : passed(seen);
    }),
  },
];

function answering(look: (runtime: Answering, facts: Facts) => Judgement): (facts: Facts) => Judgement {
  return (facts) => {
    const runtime = known(facts.runtime);
    return runtime.state === "answers" ? look(runtime, facts) : notApplicable("the runtime does not answer");
  };
}

/** The oldest that are still looked after, by name. */
const lookedAfter = new Map([
  ["containerd", [1, 7]],
  ["cri-o", [1, 31]],
] as const);

function numbersOf(version: string): readonly number[] {
  return version
    .replace(/^v/, "")
    .split(/[.~+-]/)
    .slice(0, 3)
    .map((part) => Number.parseInt(part, 10) || 0);
}

/** What older releases of containerd are known for; the first release without it is named. */
const faultsOfContainerd: readonly (readonly [mendedIn: readonly number[], fault: string])[] = [
  [[1, 7], "a pull that stalls never ends"],
  [firstThatPins, "the sandbox image is not pinned"],
  [[1, 7, 2], "devices of claims (CDI) are not passed on"],
  [[2], "pods with user namespaces or recursive read-only mounts are refused"],
];

function isBefore(version: readonly number[], other: readonly number[]): boolean {
  const at = other.findIndex((part, index) => part !== (version[index] ?? 0));
  return at >= 0 && (version[at] ?? 0) < (other[at] ?? 0);
}

function versionIsCurrent({ name, version, cgroupDriver }: Answering): Judgement {
  const numbers = numbersOf(version);
  const least = lookedAfter.get(name.toLowerCase() as "containerd");
  const faults = name === "containerd" ? faultsOfContainerd.filter(([mendedIn]) => isBefore(numbers, mendedIn)) : [];
  const seen = [`${name} ${version}`, ...faults.map(([, fault]) => fault)].join("; ");
  if (least !== undefined && isBefore(numbers, least)) {
    return warned(
      `${seen}; it is no longer looked after by its makers`,
      `install ${name} ${least.join(".")} or newer, unless your distribution looks after it`,
    );
  }
  if (cgroupDriver === undefined) {
    return warned(
      `${seen}; it does not tell its cgroup driver, which later kubelets demand`,
      name === "containerd" ? "install containerd 2.0 or newer" : `install a newer ${name}`,
    );
  }
  return passed(seen);
}

function driversAgree({ cgroupDriver, configuredDriver }: Answering, facts: Facts): Judgement {
  const found = setting(known(facts.config), "cgroupDriver");
  const source = sourceOf(found.origin);
  if (cgroupDriver !== undefined) return passed(`the runtime says ${cgroupDriver}, and the agent follows it`, source);
  const wanted = String(found.value);
  if (configuredDriver === undefined)
    return unknown(`cgroupDriver is ${wanted}; the runtime does not say which one it uses`);
  if (configuredDriver === wanted) return passed(`both use ${wanted}`, source);
  const fix = `set cgroupDriver: ${configuredDriver}, then restart the agent; or SystemdCgroup = ${wanted === "systemd"} in the runtime's configuration`;
  return failed(`cgroupDriver is ${wanted}, but the runtime uses ${configuredDriver}`, fix, source);
}
