// Defects that the agent once had, put back into the bundle of the simulation alone, to see that it finds them. Each names
// seeds that do, and that pass without the defect; `npm run simulate -- --plant NAME --seeds 500` finds others. What a seed
// leads to changes with the simulation and with the agent: then another takes its place. The first five are known from
// elsewhere, the others are those that the simulation found. Where no seed stands, the one that found it leads elsewhere now.
export const plantedFaults = {
  "judges what runs as if it came new, before the Node is known": {
    seeds: [11, 51],
    minutes: 5,
    finds: /stops container .* which runs and is wanted|is refused: .*NodeAffinity/,
    patches: [
      {
        file: "src/pod/registry/registry.ts",
        find: "else if (this.#found.has(uid)) this.#takeOver(pod);",
        replace: "",
      },
      {
        file: "src/pod/registry/admission-node-fit.ts",
        find: 'if (known === undefined && asksForNode(pod)) return { type: "undecided", waitsFor: "the Node" };',
        replace: "",
      },
    ],
  },
  "stops before every source has spoken": {
    seeds: [36, 9],
    minutes: 5,
    finds: /stops container .* which runs and is wanted/,
    patches: [
      {
        file: "src/pod/registry/registry.ts",
        find: "if (isThere && !this.#ports.mayStop(observed)) return;",
        replace: "",
      },
    ],
  },
  "a runtime that goes in the middle of the start ends the agent": {
    seeds: [95],
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
    seeds: [1],
    minutes: 12,
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
        file: "src/pod/volumes/engine/release.ts",
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
};
