// Defects that the agent once had, put back into the bundle of the simulation alone, to see that it finds them. Each names
// a seed that does; `npm run simulate -- --plant NAME --seeds 500` finds others.
export const plantedFaults = {
  "decides before the runtime is known": {
    seed: 1,
    patches: [
      {
        file: "src/pod/registry/registry.ts",
        find: "else if (!this.#ports.isRuntimeKnown())",
        replace: "else if (this.#ports === undefined)",
      },
    ],
  },
  "stops before every source has spoken": {
    seed: 1,
    patches: [
      {
        file: "src/pod/registry/registry.ts",
        find: "if (isThere && !this.#ports.mayStop(observed)) return;",
        replace: "",
      },
    ],
  },
  "a list of the API makes nothing forgotten": {
    seed: 1,
    patches: [
      {
        file: "src/connections/kube/watch/store.ts",
        find: "if (listed.has(key)) continue;",
        replace: "if (listed.has(key) || listed.size >= 0) continue;",
      },
    ],
  },
  "waits by the time of day": {
    seed: 1,
    patches: [
      {
        file: "src/pod/workers/apply.ts",
        find: "held.until - ports.clock.monotonic()",
        replace: "held.until - ports.clock.now()",
      },
      {
        file: "src/pod/workers/apply.ts",
        find: "until: ports.clock.monotonic() + tryAt - now",
        replace: "until: tryAt",
      },
    ],
  },
  "a restart forgets who is ready": {
    seed: 1,
    patches: [
      {
        file: "src/pod/probes/file-store.ts",
        find: 'return parseResults(JSON.parse(readFileSync(path, "utf8")));',
        replace: 'return parseResults(JSON.parse(readFileSync(path, "utf8"))).slice(0, 0);',
      },
    ],
  },
};
