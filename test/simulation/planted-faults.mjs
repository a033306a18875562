// Defects that the agent once had, put back into the bundle of the simulation alone, to see that it finds them. Each names
// seeds that do; `npm run simulate -- --plant NAME --seeds 500` finds others.
export const plantedFaults = {
  "judges what runs as if it came new, before the Node is known": {
    seeds: [1],
    minutes: 12,
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
    seeds: [1],
    minutes: 12,
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
    seeds: [122],
    minutes: 12,
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
    seeds: [373],
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
};
