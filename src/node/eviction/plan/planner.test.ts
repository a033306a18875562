import assert from "node:assert/strict";
import { test } from "node:test";
import {
  hard,
  Mi,
  memoryPod,
  nodefs,
  observations,
  type RankedPod,
  seen,
  settings,
  soft,
} from "../../../../test/support/eviction-plan.ts";
import type { EvictionThreshold } from "../../../ground/config/index.ts";
import type { PodSpec, PodUid } from "../../../ground/model/index.ts";
import {
  type CandidateLife,
  type EvictionCandidate,
  type EvictionStep,
  nextStep,
  noPastSteps,
  type PastSteps,
} from "./planner.ts";
import type { DiskLayout } from "./signals.ts";
import { lookAt, noPressure } from "./thresholds-met.ts";

interface PlannedPod extends RankedPod {
  readonly life?: CandidateLife;
  readonly exemption?: string;
  readonly spec?: Partial<PodSpec>;
}
const candidate = ({ life = { step: "running" }, exemption, spec, ...rest }: PlannedPod): EvictionCandidate => {
  const { pod, use } = memoryPod(rest);
  const metadata = { ...pod.metadata, uid: rest.name };
  return { pod: { ...pod, metadata, spec: { ...pod.spec, ...spec } }, use, life, exemption };
};
const stopping = (killAt: number | undefined, isAtOnce = false): CandidateLife => ({
  step: "stopping",
  killAt,
  isAtOnce,
});
const chosen = (name: string, at: number, grace: number | "at once" = 1): Partial<PastSteps> => ({
  victims: new Map([[name as PodUid, { at, grace }]]),
  lastVictimAt: at,
});

const now = 1_000_000;
function plan(request: {
  readonly of?: EvictionThreshold;
  readonly available?: number;
  /** A second ago. */
  readonly before?: number;
  readonly pods: readonly PlannedPod[];
  readonly pastSteps?: Partial<PastSteps>;
  readonly layout?: DiskLayout;
  readonly maxPodGraceSeconds?: number;
}): EvictionStep {
  const {
    of = hard,
    available = 90,
    pods,
    pastSteps = {},
    layout = "one disk for all",
    maxPodGraceSeconds = 0,
  } = request;
  const then = request.before ?? available;
  let record = noPressure;
  if (of.graceMs > 0) {
    record = lookAt(record, observations(seen(of.signal, available * Mi)), settings(of), now - of.graceMs).record;
  }
  record = lookAt(record, observations(seen(of.signal, then * Mi)), settings(of), now - 1000).record;
  const present = observations(seen(of.signal, available * Mi));
  return nextStep({
    now,
    look: lookAt(record, present, settings(of), now),
    observations: present,
    layout,
    pastSteps: { ...noPastSteps, ...pastSteps },
    candidates: pods.map(candidate),
    maxPodGraceSeconds,
  });
}
const shown = (step: EvictionStep): string => {
  switch (step.type) {
    case "evict":
      return `evict ${step.victim.pod.metadata.name} ${step.grace}`;
    case "hasten":
      return `hasten ${step.pods.map((pod) => pod.metadata.name).join(" ")} ${step.grace}`;
    case "reclaim":
      return `reclaim ${step.means.join(" ")}`;
    default:
      return step.type;
  }
};

for (const { name, request, expected } of [
  { name: "enough", request: { available: 100, pods: [{ name: "a", used: 50 }] }, expected: "rest" },
  {
    name: "the first in rank goes, with a second to end",
    request: {
      pods: [
        { name: "a", used: 50 },
        { name: "b", used: 60 },
      ],
    },
    expected: "evict b 1",
  },
  {
    name: "who must stay is passed over",
    request: {
      pods: [
        { name: "a", used: 50 },
        { name: "b", used: 60, exemption: "critical" },
      ],
    },
    expected: "evict a 1",
  },
  {
    name: "only who must stay",
    request: { pods: [{ name: "b", used: 60, exemption: "critical" }] },
    expected: "stuck",
  },
  { name: "nobody at all", request: { pods: [] }, expected: "stuck" },
  {
    name: "at a rate that leaves no time to ask, nobody is asked",
    request: { available: 90, before: 180, pods: [{ name: "a", used: 500 }] },
    expected: "evict a at once",
  },
  {
    name: "slow growth leaves time",
    request: { available: 90, before: 100, pods: [{ name: "a", used: 500 }] },
    expected: "evict a 1",
  },
  {
    name: "with hardly anything left, nobody is asked",
    request: { available: 20, pods: [{ name: "a", used: 9 }] },
    expected: "evict a at once",
  },
  {
    name: "soft: the pod's own grace, as far as the node allows",
    request: { of: soft, available: 190, maxPodGraceSeconds: 10, pods: [{ name: "a", used: 5 }] },
    expected: "evict a 10",
  },
  {
    name: "soft: never more than the pod's own",
    request: {
      of: soft,
      available: 190,
      maxPodGraceSeconds: 100,
      pods: [{ name: "a", used: 5, spec: { terminationGracePeriodSeconds: 7 } }],
    },
    expected: "evict a 7",
  },
  {
    name: "soft: a negative maximum is the pod's own",
    request: { of: soft, available: 190, maxPodGraceSeconds: -1, pods: [{ name: "a", used: 5 }] },
    expected: "evict a 30",
  },
  {
    name: "a victim that frees enough is waited for",
    request: {
      pods: [
        { name: "a", used: 50, life: stopping(now + 900) },
        { name: "b", used: 60 },
      ],
      pastSteps: chosen("a", now - 100),
    },
    expected: "wait",
  },
  {
    name: "one that frees too little is waited for as well while there is time",
    request: {
      pods: [
        { name: "a", used: 1, life: stopping(now + 900) },
        { name: "b", used: 60 },
      ],
      pastSteps: chosen("a", now - 100),
    },
    expected: "wait",
  },
  {
    name: "but not when there is none",
    request: {
      available: 90,
      before: 190,
      pods: [
        { name: "a", used: 1, life: stopping(now, true) },
        { name: "b", used: 60 },
      ],
      pastSteps: chosen("a", now - 100, "at once"),
    },
    expected: "evict b at once",
  },
  {
    name: "a victim that does not die holds up nobody",
    request: {
      pods: [
        { name: "a", used: 50, life: stopping(now - 10_000) },
        { name: "b", used: 60 },
      ],
      pastSteps: chosen("a", now - 11_000),
    },
    expected: "evict b 1",
  },
  {
    name: "a victim that is slow to die is waited for: whoever is next may have next to nothing",
    request: {
      pods: [
        { name: "a", used: 50, life: stopping(now - 9_000) },
        { name: "b", used: 1 },
      ],
      pastSteps: chosen("a", now - 10_000),
    },
    expected: "wait",
  },
  {
    name: "and longer than others while whoever is next would not be enough",
    request: {
      pods: [
        { name: "a", used: 50, life: stopping(now - 29_999) },
        { name: "b", used: 1 },
      ],
      pastSteps: chosen("a", now - 31_000),
    },
    expected: "wait",
  },
  {
    name: "but not for ever",
    request: {
      pods: [
        { name: "a", used: 50, life: stopping(now - 30_000) },
        { name: "b", used: 1 },
      ],
      pastSteps: chosen("a", now - 31_000),
    },
    expected: "evict b 1",
  },
  {
    name: "nor where it would not be enough either",
    request: {
      pods: [
        { name: "a", used: 5, life: stopping(now - 10_000) },
        { name: "b", used: 1 },
      ],
      pastSteps: chosen("a", now - 11_000),
    },
    expected: "evict b 1",
  },
  {
    name: "nor while memory runs out",
    request: {
      before: 190,
      pods: [
        { name: "a", used: 50, life: stopping(now - 10_000) },
        { name: "b", used: 1 },
      ],
      pastSteps: chosen("a", now - 11_000),
    },
    expected: "evict b at once",
  },
  {
    name: "a victim with a long grace gets a short one when it gets worse",
    request: { pods: [{ name: "a", used: 50, life: stopping(now + 20_000) }], pastSteps: chosen("a", now - 9_000, 30) },
    expected: "hasten a 1",
  },
  {
    name: "and none when there is no time",
    request: {
      available: 90,
      before: 190,
      pods: [{ name: "a", used: 50, life: stopping(now + 900) }],
      pastSteps: chosen("a", now - 100),
    },
    expected: "hasten a at once",
  },
  {
    name: "a pod that ends anyway and frees enough is hastened, and nobody else goes",
    request: {
      pods: [
        { name: "deleted", used: 50, life: stopping(now + 25_000) },
        { name: "b", used: 60 },
      ],
    },
    expected: "hasten deleted 1",
  },
  {
    name: "unless it must not be touched: then it is waited for",
    request: {
      pods: [
        { name: "deleted", used: 50, life: stopping(now + 25_000), exemption: "critical" },
        { name: "b", used: 60 },
      ],
    },
    expected: "wait",
  },
  {
    name: "but not for an hour: one that takes longer than a victim may is not counted on",
    request: {
      pods: [
        { name: "deleted", used: 50, life: stopping(now + 3_600_000), exemption: "critical" },
        { name: "b", used: 60 },
      ],
    },
    expected: "evict b 1",
  },
  {
    name: "nor at all when nothing would be left by then",
    request: {
      available: 90,
      before: 190,
      pods: [
        { name: "deleted", used: 50, life: stopping(now + 25_000), exemption: "critical" },
        { name: "b", used: 60 },
      ],
    },
    expected: "evict b at once",
  },
  {
    name: "one that frees nothing that matters is left in peace",
    request: {
      pods: [
        { name: "deleted", used: 1, life: stopping(now + 25_000) },
        { name: "b", used: 60 },
      ],
    },
    expected: "evict b 1",
  },
  {
    name: "soft thresholds hasten nobody",
    request: { of: soft, available: 190, pods: [{ name: "deleted", used: 50, life: stopping(now + 25_000) }] },
    expected: "wait",
  },
  {
    name: "a pod that is to end but has not begun to is hastened, so that it is known since when it is waited for",
    request: {
      pods: [
        { name: "deleted", used: 50, life: stopping(undefined) },
        { name: "b", used: 60 },
      ],
    },
    expected: "hasten deleted 1",
  },
  {
    name: "and then waited for",
    request: {
      pods: [
        { name: "deleted", used: 50, life: stopping(undefined) },
        { name: "b", used: 60 },
      ],
      pastSteps: { victims: new Map([["deleted" as PodUid, { at: now - 5_999, grace: 1 }]]) },
    },
    expected: "wait",
  },
  {
    name: "but not for ever: whatever holds it holds up nobody",
    request: {
      pods: [
        { name: "deleted", used: 50, life: stopping(undefined) },
        { name: "b", used: 60 },
      ],
      pastSteps: { victims: new Map([["deleted" as PodUid, { at: now - 11_000, grace: 1 }]]) },
    },
    expected: "evict b 1",
  },
  {
    name: "one that must not be touched and has not begun to end is not counted on",
    request: {
      pods: [
        { name: "deleted", used: 50, life: stopping(undefined), exemption: "critical" },
        { name: "b", used: 60 },
      ],
    },
    expected: "evict b 1",
  },
  {
    name: "soft: one that has not begun to end is not counted on",
    request: {
      of: soft,
      available: 190,
      pods: [
        { name: "deleted", used: 50, life: stopping(undefined) },
        { name: "b", used: 60 },
      ],
    },
    expected: "evict b 0",
  },
  {
    name: "the next victim comes a second after the last at the earliest",
    request: { pods: [{ name: "b", used: 60 }], pastSteps: { lastVictimAt: now - 999 } },
    expected: "wait",
  },
  {
    name: "and then it comes",
    request: { pods: [{ name: "b", used: 60 }], pastSteps: { lastVictimAt: now - 1_000 } },
    expected: "evict b 1",
  },
  {
    name: "disk: first what nobody would miss",
    request: { of: nodefs, pods: [{ name: "a", used: 50 }] },
    expected: "reclaim containers images",
  },
  {
    name: "disk: also before the time of a pod that ends anyway is cut",
    request: { of: nodefs, pods: [{ name: "deleted", used: 50 * Mi, life: stopping(now + 3_600_000) }] },
    expected: "reclaim containers images",
  },
  {
    name: "disk: and while that is under way, it has its time",
    request: {
      of: nodefs,
      pods: [{ name: "deleted", used: 50 * Mi, life: stopping(now + 3_600_000) }],
      pastSteps: { reclaimingSince: now - 1_000 },
    },
    expected: "wait",
  },
  {
    name: "disk: it is cut when that did not help",
    request: {
      of: nodefs,
      pods: [{ name: "deleted", used: 50 * Mi, life: stopping(now + 3_600_000) }],
      pastSteps: { lastReclaimAt: now - 10 },
    },
    expected: "hasten deleted 1",
  },
  {
    name: "disk: while that is under way, nobody goes",
    request: { of: nodefs, pods: [{ name: "a", used: 50 }], pastSteps: { reclaimingSince: now - 29_999 } },
    expected: "wait",
  },
  {
    name: "disk: unless it takes too long",
    request: { of: nodefs, pods: [{ name: "a", used: 50 }], pastSteps: { reclaimingSince: now - 30_000 } },
    expected: "evict a 1",
  },
  {
    name: "disk: when it did not help, pods go",
    request: { of: nodefs, pods: [{ name: "a", used: 50 }], pastSteps: { lastReclaimAt: now - 10 } },
    expected: "evict a 1",
  },
  {
    name: "disk: what a victim leaves behind is removed before the next goes",
    request: {
      of: nodefs,
      pods: [{ name: "b", used: 50 }],
      pastSteps: { lastReclaimAt: now - 9_000, lastVictimAt: now - 3_000 },
    },
    expected: "reclaim containers images",
  },
  {
    name: "disk: what it left takes a while to go",
    request: {
      of: nodefs,
      pods: [{ name: "b", used: 50 }],
      pastSteps: { lastReclaimAt: now - 9_000, lastDiskVictimAt: now - 14_999 },
    },
    expected: "wait",
  },
  {
    name: "disk: but not for ever",
    request: {
      of: nodefs,
      pods: [{ name: "b", used: 50 }],
      pastSteps: { lastReclaimAt: now - 9_000, lastDiskVictimAt: now - 15_000 },
    },
    expected: "evict b 1",
  },
  {
    name: "disk: a victim's volumes are waited for",
    request: {
      of: nodefs,
      pods: [
        { name: "a", used: 50, life: { step: "stopped" } },
        { name: "b", used: 60 },
      ],
      pastSteps: { ...chosen("a", now - 20_000), lastReclaimAt: now - 1_000 },
    },
    expected: "wait",
  },
  {
    name: "disk, images apart: the node's own disk has nothing to be removed first",
    request: { of: nodefs, layout: "images apart", pods: [{ name: "a", used: 50 }] },
    expected: "evict a 1",
  },
] satisfies readonly { name: string; request: Parameters<typeof plan>[0]; expected: string }[]) {
  test(`planner: ${name}`, () => assert.equal(shown(plan(request)), expected));
}
