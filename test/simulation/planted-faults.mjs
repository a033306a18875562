// Defects that the agent once had, put back into the bundle of the simulation alone, to see that it finds them. Each names
// a seed that does; `npm run simulate -- --plant NAME --seeds 500` finds others.
export const plantedFaults = {
  "decides before the runtime is known": {
    // Seed 11 found it before parts were built first and started after; no seed is known since.
    seed: undefined,
    minutes: 40,
    finds: /was ready and is not/,
    patches: [
      {
        file: "src/pod/registry/registry.ts",
        find: "else if (!this.#ports.isRuntimeKnown())",
        replace: "else if (this.#ports === undefined)",
      },
    ],
  },
  "stops before every source has spoken": {
    seed: 2,
    minutes: 40,
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
    seed: 8,
    minutes: 40,
    finds: /ended by itself/,
    patches: [
      {
        file: "src/connections/cri/until-answered.ts",
        find: "if (criCodeOf(error) === undefined) throw error;",
        replace: "if (criCodeOf(error) !== undefined) throw error;",
      },
    ],
  },
  "waits by the time of day": {
    // Not found in 36 seeds of 40 minutes: it takes a jump back by hours while a container waits.
    seed: undefined,
    minutes: 60,
    finds: /does not run/,
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
    minutes: 40,
    finds: /was ready and is not/,
    patches: [
      {
        file: "src/pod/probes/file-store.ts",
        find: 'return parseResults(JSON.parse(readFileSync(path, "utf8")));',
        replace: 'return parseResults(JSON.parse(readFileSync(path, "utf8"))).slice(0, 0);',
      },
    ],
  },
};
