// Defects that the agent once had, put back into the bundle of the simulation alone, to see that it finds them. Each names
// seeds that do, and that pass without the defect; `npm run simulate -- --plant NAME --seeds 500` finds others. What a seed
// leads to changes with the simulation and with the agent: then another takes its place. The first five are known from
// elsewhere, the last six nobody has made yet, and the others are those that the simulation found. Where no seed stands,
// the one that found it leads elsewhere now, or takes too long.
export const plantedFaults = {
  "judges what runs as if it came new, before the Node is known": {
    seeds: [11, 51],
    minutes: 5,
    finds: /stops container .* which runs and is wanted|is refused: .*NodeAffinity/,
    patches: [
      {
        file: "src/pod/registry/registry.ts",
        find: 'return this.#found.has(uid) ? { type: "take over" } : { type: "ask" };',
        replace: 'return { type: "ask" };',
      },
      {
        file: "src/pod/registry/admission-node-fit.ts",
        find: 'if (known === undefined && asksForNode(pod)) return { type: "undecided", waitsFor: "the Node" };',
        replace: "",
      },
    ],
  },
  "stops before every source has spoken": {
    seeds: [9, 36],
    minutes: 5,
    finds: /stops container .* which runs and is wanted/,
    patches: [
      {
        file: "src/pod/registry/orphaned-pods.ts",
        find: "if (isThere && !this.#ports.mayStop(observed)) return;",
        replace: "",
      },
    ],
  },
  "a runtime that goes in the middle of the start ends the agent": {
    seeds: [63, 62, 27],
    minutes: 5,
    finds: /ended by itself/,
    patches: [
      {
        file: "src/connections/cri/until-answered.ts",
        find: 'if (code === undefined || code === "Unimplemented") throw error;',
        replace: "throw error;",
      },
    ],
  },
  "waits by the time of day": {
    // It takes a jump back by hours while a container waits, and an agent that is not killed before the end.
    seeds: [12],
    minutes: 30,
    finds: /does not run/,
    patches: [
      {
        file: "src/pod/workers/apply.ts",
        find: "held.until - ports.clock.monotonic()",
        replace: "held.until - ports.clock.now()",
      },
      {
        file: "src/pod/workers/apply.ts",
        find: "until: clock.monotonic() + tryAt - now",
        replace: "until: tryAt",
      },
    ],
  },
  "a restart forgets who is ready": {
    seeds: [9, 11],
    minutes: 5,
    finds: /was ready and is not/,
    patches: [
      {
        file: "src/pod/probes/file-store.ts",
        find: 'return parseResults(JSON.parse(readFileSync(path, "utf8")));',
        replace: 'return parseResults(JSON.parse(readFileSync(path, "utf8"))).slice(0, 0);',
      },
    ],
  },
  "a container that is not to start again does in a new sandbox": {
    seeds: [52],
    minutes: 5,
    finds: /is started again after it ended|its status says/,
    patches: [
      {
        file: "src/pod/workers/plan.ts",
        find: "const startsAnew = restartAllTrigger(pod, observed) !== undefined;",
        replace: "const startsAnew = true;",
      },
    ],
  },
  "a pod that never got its share of a volume keeps it staged": {
    seeds: [35],
    minutes: 12,
    finds: /is still staged/,
    patches: [
      {
        file: "src/pod/volumes/manager/release.ts",
        find: "for (const kind of kinds) await kind.released?.(uid, signal);",
        replace: "",
      },
    ],
  },
  "a postStart hook that is never answered outlives its container": {
    seeds: [],
    minutes: 5,
    finds: /does not run/,
    patches: [
      {
        file: "src/agent/build-pod-actions.ts",
        find: "{ pod, container, id, containerEnded: end.signal }",
        replace: "{ pod, container, id }",
      },
    ],
  },
  "a container that could not start takes the place of the one before, which ended": {
    seeds: [],
    minutes: 5,
    finds: /is Pending after it was Running|goes back/,
    patches: [
      {
        file: "src/pod/runtime/container-gc.ts",
        find: "isUnstarted: state === ContainerState.CONTAINER_CREATED,",
        replace: "isUnstarted: false,",
      },
    ],
  },
  "a mirror never learns of a status that is older than the agent's life": {
    seeds: [182],
    minutes: 5,
    finds: /its status says/,
    patches: [
      {
        file: "src/pod/status/api-reports.ts",
        find: "statuses.onConfirm((pod) => this.#sender.wake(uidOf(pod)));",
        replace: "",
      },
    ],
  },
  "an end that a full disk had no room for is forgotten by the next life": {
    // Seed 3 finds it after 31 minutes of its hour, which is too long for every test run; worker.test.ts holds it.
    seeds: [],
    minutes: 60,
    finds: /was Succeeded and is Running|was Failed and is/,
    patches: [
      {
        file: "src/pod/workers/pod-worker.ts",
        find: "isTerminalPhase(shown.phase) && !isTerminalPhase(saved.phase) ? shown : saved;",
        replace: "shown === saved ? shown : saved;",
      },
    ],
  },
  "a pod that has succeeded is taken off by the next agent": {
    seeds: [75],
    minutes: 5,
    finds: /was Succeeded and is Failed/,
    patches: [
      {
        file: "src/agent/build-eviction.ts",
        find: 'isTerminalPhase(pod.status?.phase) ? "stopped" : "running"',
        replace: '"running"',
      },
      {
        file: "src/pod/workers/publish-status.ts",
        find: 'if (previous?.phase === "Succeeded" || pod.status?.phase === "Succeeded") return computed;',
        replace: "",
      },
    ],
  },
  "takes off whoever holds least": {
    seeds: [19, 25],
    minutes: 5,
    finds: /above its request, before/,
    patches: [
      {
        file: "src/node/eviction/plan/planner.ts",
        find: "const [first] = ranked(eligible, threshold.signal, layout);",
        replace: "const [first] = ranked(eligible, threshold.signal, layout).toReversed();",
      },
    ],
  },
  "takes off what the node can't do without": {
    seeds: [1],
    minutes: 5,
    finds: /which the node can't do without, is taken off|which comes from a file, is taken off/,
    patches: [
      {
        file: "src/node/eviction/plan/planner.ts",
        find: 'candidates.filter(({ exemption, life }) => exemption === undefined && life.step === "running")',
        replace: 'candidates.filter(({ life }) => life.step === "running")',
      },
    ],
  },
  "never takes anybody off": {
    seeds: [19],
    minutes: 5,
    finds: /memory was short for long/,
    patches: [
      {
        file: "src/node/eviction/plan/planner.ts",
        find: "if (mine.length > 0 && !isLosing) return hastened",
        replace: "if (mine.length >= 0) return hastened",
      },
    ],
  },
  "gives a device to two pods": {
    seeds: [6],
    minutes: 5,
    finds: /device .* is that of/,
    patches: [
      {
        file: "src/pod/resources/devices/device-manager.ts",
        find: "inUse: devicesInUse(this.#state, resource),",
        replace: "inUse: new Set(),",
      },
    ],
  },
  "does not give claims back": {
    seeds: [1, 4],
    minutes: 5,
    finds: /is still prepared/,
    patches: [
      {
        file: "src/pod/resources/claims/claim-manager.ts",
        find: "if (!this.holds(uid)) return;",
        replace: "return;",
      },
    ],
  },
  "a pod that is resized as a whole keeps what its containers had of it": {
    seeds: [23],
    minutes: 5,
    finds: /as a whole, and has|as a whole, its status|has PodResizeInProgress/,
    patches: [
      {
        file: "src/pod/workers/resize-order.ts",
        find: "if (isDue(plan.pod)) ofPod = withAmountsOf(ofPod, pod.spec.resources, resources);",
        replace: "",
      },
    ],
  },
  "a pod that runs once waits for ever when its sandbox dies before its work begins": {
    seeds: [30010],
    minutes: 5,
    finds: /is Pending/,
    patches: [
      {
        file: "src/pod/workers/plan.ts",
        find: "sandbox.attempt !== 0 && hasBegunWork(input)",
        replace: "sandbox.attempt !== 0 && observed.containers.length > 0",
      },
    ],
  },
  "what somebody else sees first the pod's worker never hears of": {
    seeds: [40033],
    minutes: 5,
    finds: /does not run, its status says/,
    patches: [
      {
        file: "src/agent/build-eviction.ts",
        find: "sight.observer.look(uid, signal)",
        replace: "sight.observer.inspect(uid, signal)",
      },
    ],
  },
};
