// Which folder of src/ may import which. STYLE: imports point down, never up; doors know ground only.
// A folder may always import itself and the folders listed here; other folders are entered through their index.ts.
const ground = ["base", "model"];
const config = [...ground, "config"];
const doors = ["kube", "cri", "plugins", "host"];
const walk = ["sources", "pods", "workers", "resources", "volumes", "images", "runtime", "probes", "status"];
const beside = ["node", "eviction"];

/** Stages later in the walk than `stage`. */
const laterThan = (stage) => walk.slice(walk.indexOf(stage) + 1);

export const allowedImports = {
  base: [],
  model: ["base"],
  config: ground,
  ...Object.fromEntries(doors.map((door) => [door, config])),
  ...Object.fromEntries(walk.map((stage) => [stage, [...config, ...doors, ...laterThan(stage)]])),
  ...Object.fromEntries(beside.map((stage) => [stage, [...config, ...doors]])),
  server: [...config, ...doors],
  agent: [...config, ...doors, ...walk, ...beside, "server"],
  localapi: [...ground, "kube"],
  hollow: [...ground, "cri"],
  cli: config,
  "main.ts": [...config, "agent", "cli", "localapi"],
};
