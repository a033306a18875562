// How everything is bundled, the agent as well as the tests.
/** Modules that run as processes or threads of their own, found beside the file that starts them. */
export const ownProcesses = [
  "src/ground/base/process-thread.ts",
  "src/ground/model/manifest-process.ts",
  "src/node/rollout/trial-guard-thread.ts",
  "src/pod/volumes/file-processes/file-process.ts",
];

export const bundling = {
  bundle: true,
  splitting: true,
  format: "esm",
  outExtension: { ".js": ".mjs" },
  platform: "node",
  target: "node20",
  sourcemap: "linked",
  // Whoever follows a stack has the sources at hand; a process that reads them with every map only starts later.
  sourcesContent: false,
  logLevel: "warning",
};
