import type { Container, Pod } from "../../../ground/model/index.ts";
import { type Check, type Judgement, notApplicable, passed, warned } from "../check.ts";
import { known } from "../facts.ts";
import type { ExaminedPods } from "../gather/pods.ts";
import { stretch } from "./amounts.ts";

type PodCheck = Omit<Check, "look"> & { readonly look: (pods: ExaminedPods) => Judgement };

const stuckMs = 10 * 60_000;
const lateMs = 60_000;
const mostNamed = 5;
const costlyShare = 0.01;

const checks: readonly PodCheck[] = [
  {
    id: "pods.stuck",
    title: "No pod waits for long",
    why: "what a pod waits for more than ten minutes for seldom comes by itself",
    look: ({ waiting, now }) => {
      const stuck = waiting.filter(({ waitingFor }) => now - waitingFor.since > stuckMs);
      const shown = stuck.map(
        ({ namespace, name, waitingFor: { reason, message, since } }) =>
          `${namespace}/${name} for ${stretch((now - since) / 1000)}: ${reason}: ${clean(message)}`,
      );
      return some(shown, "no pod waits for more than 10 min", `nodelet why ${stuck[0]?.namespace}/${stuck[0]?.name}`);
    },
  },
  {
    id: "pods.crash-loops",
    title: "No container crashes again and again",
    why: "it does no work, and each start costs the node",
    look: ({ pods }) => {
      const loops = pods.flatMap((pod) =>
        [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])]
          .filter(({ state }) => state?.waiting?.reason === "CrashLoopBackOff")
          .map(({ name, restartCount, lastState }) => ({
            pod,
            name,
            text: `${nameOf(pod)} ${name}: ${restartCount} restarts, last exit code ${lastState?.terminated?.exitCode ?? "unknown"}`,
          })),
      );
      const [first] = loops;
      const named = first === undefined ? "" : nameOf(first.pod);
      return some(
        loops.map(({ text }) => text),
        "no container is in CrashLoopBackOff",
        `nodelet logs ${named} -c ${first?.name} --previous   and nodelet why ${named}`,
      );
    },
  },
  {
    id: "pods.probes",
    title: "No probe costs more than it is worth",
    why: "a command that runs every few seconds may cost more than the container itself",
    look: costlyProbes,
  },
  {
    id: "pods.limits",
    title: "Containers with limits say what they request",
    why: "a limit without a request becomes the request: the pod holds all of it, used or not",
    look: ({ pods }) => {
      const named = containers(pods).flatMap(({ pod, container }) => {
        const { limits = {}, requests = {} } = container.resources ?? {};
        const missing = Object.keys(limits).filter((resource) => requests[resource] === undefined);
        return missing.length === 0 ? [] : [`${nameOf(pod)} ${container.name}: ${missing.join(", ")}`];
      });
      return some(named, "every limit has a request beside it", "add requests below resources of these containers");
    },
  },
  {
    id: "pods.terminating",
    title: "No pod overstays its grace",
    why: "a pod that does not end holds its volumes, devices and name",
    look: ({ pods, now }) => {
      const late = pods.filter(
        ({ metadata }) =>
          metadata?.deletionTimestamp !== undefined && now - Date.parse(String(metadata.deletionTimestamp)) > lateMs,
      );
      const shown = late.map(
        (pod) => `${nameOf(pod)} since ${stretch((now - Date.parse(String(pod.metadata?.deletionTimestamp))) / 1000)}`,
      );
      const [first] = late;
      return some(shown, "no pod is past its grace", first === undefined ? "" : `nodelet why ${nameOf(first)}`);
    },
  },
  {
    id: "pods.latest",
    title: "Images are named by more than “latest”",
    why: "with Always each start asks the registry, and may bring another image than the last one",
    look: ({ pods }) => {
      const named = containers(pods).flatMap(({ pod, container }) =>
        container.imagePullPolicy === "Always" && isLatest(container.image ?? "")
          ? [`${nameOf(pod)} ${container.name}: ${container.image}`]
          : [],
      );
      return some(named, "no image is pulled by the tag latest", "name a version, or a digest");
    },
  },
];

export const podChecks: readonly Check[] = checks.map(({ look, ...check }) => ({
  ...check,
  look: (facts) => {
    const pods = known(facts.pods);
    return pods === undefined ? notApplicable("no agent runs, and only it knows its pods") : look(pods);
  },
}));

function some(shown: readonly string[], otherwise: string, fix: string): Judgement {
  if (shown.length === 0) return passed(otherwise);
  const more = shown.length > mostNamed ? `; and ${shown.length - mostNamed} more` : "";
  return warned(`${shown.slice(0, mostNamed).join("; ")}${more}`, fix);
}

function costlyProbes({ pods, probes }: ExaminedPods): Judgement {
  const periods = new Map<string, number>(
    containers(pods).flatMap(({ pod, container }) =>
      (["liveness", "readiness"] as const).flatMap((kind) => {
        const probe = container[`${kind}Probe`];
        if (probe?.exec === undefined) return [];
        return [[`${nameOf(pod)} ${container.name} ${kind}`, probe.periodSeconds ?? 10] as const];
      }),
    ),
  );
  const costly = probes.flatMap(({ namespace, pod, container, type, meanMs }) => {
    const name = `${namespace}/${pod} ${container} ${type.toLowerCase()}`;
    const period = periods.get(name);
    const share = period === undefined ? 0 : meanMs / 1000 / period;
    return share > costlyShare
      ? [`${name}: ${Math.round(meanMs)} ms every ${period} s, up to ${(share * 100).toFixed(1)} % of a core`]
      : [];
  });
  return some(
    costly,
    "no exec probe takes more than 1 % of its period",
    "raise periodSeconds, or use a gRPC or HTTP probe",
  );
}

function containers(pods: readonly Pod[]): readonly { readonly pod: Pod; readonly container: Container }[] {
  return pods.flatMap((pod) =>
    [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])].map((container) => ({ pod, container })),
  );
}

function isLatest(image: string): boolean {
  if (image.includes("@")) return false;
  const tag = /:([^/:]+)$/.exec(image)?.[1];
  return tag === undefined || tag === "latest";
}

function nameOf({ metadata }: Pod): string {
  return `${metadata?.namespace ?? "default"}/${metadata?.name}`;
}

/** Messages come from pods and images: one line, and not too long. */
function clean(message: string): string {
  return message.replace(/[\p{Cc}\p{Cf}]+/gu, " ").slice(0, 200);
}
