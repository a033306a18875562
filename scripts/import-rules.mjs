// Which folder of src/ may import which. docs/architecture.md: imports point down, never up; connections know the ground only.
// A folder may always import itself and the folders listed here; other folders are entered through their index.ts.
const inGroup = (group, ...names) => names.map((name) => `${group}/${name}`);
const ground = inGroup("ground", "base", "model");
const config = [...ground, "ground/config"];
const connections = inGroup("connections", "kube", "cri", "plugins", "host", "otlp");
/** In the order in which a pod meets them. */
const walk = inGroup(
  "pod",
  ...["sources", "registry", "workers", "resources", "volumes", "images", "runtime", "probes", "status"],
);
const node = inGroup("node", "object", "cloud", "rollout", "eviction", "shutdown", "firewall", "oom", "server");

/** Stages later in the walk than `stage`. */
const laterThan = (stage) => walk.slice(walk.indexOf(stage) + 1);

export const allowedImports = {
  "ground/base": [],
  "ground/model": ["ground/base"],
  "ground/config": ground,
  "ground/grpc": ["ground/base"],
  "ground/spdy": [],
  "ground/metrics": [],
  ...Object.fromEntries(connections.map((connection) => [connection, [...config, "ground/grpc"]])),
  ...Object.fromEntries(walk.map((stage) => [stage, [...config, ...connections, ...laterThan(stage)]])),
  ...Object.fromEntries(node.map((part) => [part, [...config, ...connections]])),
  // Serves gRPC beside HTTP, and the metrics.
  "node/server": [...config, ...connections, "ground/grpc", "ground/metrics"],
  // Sees every part, and only agent/ sees it.
  "node/metrics": [...config, ...connections, ...walk, "node/server", "ground/metrics"],
  agent: [...config, ...connections, ...walk, ...node, "node/metrics"],
  "beside/localapi": [...ground, "connections/kube"],
  "beside/hollow": [...ground, "connections/cri", "ground/grpc"],
  "beside/dockershim": [
    ...ground,
    "ground/grpc",
    "ground/spdy",
    "ground/metrics",
    "connections/cri",
    "connections/host",
  ],
  "beside/doctor": config,
  // Shown by the agent, of which it knows nothing: it is fed through its ports.
  "beside/dashboard": [...config, "connections/host"],
  "beside/cli": [...config, "ground/spdy"],
  "main.ts": [...config, "agent", "beside/cli", "beside/dockershim", "beside/localapi"],
};

/** Folders that a folder may import only when it needs them, by `import()`: loading them costs time and memory. */
export const lazyImports = {
  agent: ["beside/dashboard"],
  "beside/cli": ["connections/cri", "connections/host", "beside/doctor"],
  "beside/doctor": ["connections/cri", "connections/host", "connections/kube"],
};

/**
 * Which parts of a folder may import which, where there is a direction: a subfolder, or "." for the files beside the
 * subfolders. A part that is not listed may import all of its folder.
 */
export const importsInside = {
  "connections/host": {
    dbus: [],
    systemd: [".", "dbus"],
    logind: [".", "dbus"],
    usage: ["."],
  },
  "connections/kube": {
    access: [],
    transport: ["access"],
    watch: ["."],
    objects: [".", "watch"],
    events: ["."],
    certificates: [".", "access", "watch"],
  },
  "pod/volumes": {
    content: [],
    mounting: [],
    objects: [],
    stats: [],
    "file-processes": ["content", "mounting", "stats"],
    kinds: ["file-processes", "content", "mounting", "objects", "stats"],
    attaching: ["kinds"],
    csi: ["file-processes", "attaching", "kinds", "mounting", "objects", "stats"],
    flex: ["file-processes", "attaching", "kinds", "mounting", "stats"],
    disks: ["file-processes", "attaching", "kinds", "mounting", "stats"],
    manager: ["file-processes", "kinds", "mounting", "objects", "stats"],
  },
  "pod/runtime": {
    mapping: [],
  },
  "pod/probes": {
    http: ["."],
    grpc: ["http"],
  },
  "node/object": {
    status: ["."],
    "csi-node": ["."],
    registration: [".", "status"],
    heartbeat: ["status"],
  },
  "node/server": {
    tls: [],
    auth: ["api"],
    stats: [".", "api"],
    metrics: [".", "api", "stats"],
    logs: [".", "api"],
  },
  "beside/localapi": {
    kinds: ["."],
    schema: [".", "gen"],
    protobuf: [".", "gen", "schema"],
    patch: [".", "schema"],
    store: ["."],
    selectors: [".", "kinds"],
    tables: [".", "kinds"],
    rest: [".", "kinds", "patch", "schema", "selectors", "store"],
    admission: [".", "kinds", "rest"],
    strategies: [".", "admission", "kinds", "rest"],
    auth: [".", "kinds", "rest", "selectors", "store"],
  },
  "beside/doctor": {
    gather: ["."],
    checks: [".", "gather"],
    output: ["."],
  },
  "beside/cli": {
    machine: [],
  },
};
