import type { Facts, FactValues } from "../../src/beside/doctor/facts.ts";
import type { AgentSelf } from "../../src/beside/doctor/gather/agent.ts";
import type { CertificateFact } from "../../src/beside/doctor/gather/certificates.ts";
import type { FileFact } from "../../src/beside/doctor/gather/files.ts";
import { configReport, loadConfig } from "../../src/ground/config/index.ts";
import { memoryIo } from "./config-io.ts";
import { configOf, fileHeader } from "./load-config.ts";

export const labNow = Date.UTC(2026, 10, 17);
const dayMs = 86_400_000;

/** A way to start an agent. */
export interface SetUp {
  readonly argv: readonly string[];
  /** By path; those of a configuration get apiVersion and kind by themselves. */
  readonly files?: Readonly<Record<string, string>>;
}

/** What is known of a node that is in order, with the given pieces in place of its own. */
export async function labFacts(setUp: SetUp, other: Partial<FactValues> = {}): Promise<Facts> {
  const files = Object.entries(setUp.files ?? {}).map(([path, text]) => [path, fileHeader + text]);
  const config = configOf(await loadConfig(setUp.argv, memoryIo(Object.fromEntries(files))));
  const report = configReport(config);
  const isMember = config.flags.kubeconfig !== "";
  const { clientCAFile } = config.kubelet.authentication.x509;
  const values: FactValues = {
    config: { report, subject: "the lab", drift: { state: "same" } },
    agent: {
      state: "running",
      socket: "/run/nodelet.sock",
      self: labSelf(isMember),
      config: { ...report, drift: { state: "same" } },
      pods: [],
      waiting: [],
    },
    processes: [{ pid: 7, program: "nodelet", args: [`--root-dir=${report.rootDir}`] }],
    unit: {
      kind: "unit",
      name: "nodelet.service",
      files: [file("/etc/systemd/system/nodelet.service")],
      addressDeny: undefined,
    },
    configFiles: {
      config: Object.keys(setUp.files ?? {}).map((path) => file(path)),
      kubeconfig: isMember ? [file(config.flags.kubeconfig)] : [],
      clientCa: clientCAFile === "" ? undefined : file(clientCAFile, 0o644),
    },
    kubeProxy: undefined,
    certificates: [
      ...(clientCAFile === "" ? [] : [certificate("authorities of clients", clientCAFile)]),
      ...(isMember ? [certificate("client", "/var/lib/kubelet/pki/kubelet-client-current.pem")] : []),
      certificate("serving", config.kubelet.tlsCertFile || "/var/lib/kubelet/pki/kubelet-server-current.pem"),
    ],
    serving: {
      state: "answers",
      where: "127.0.0.1:10250",
      weakSuite: undefined,
      oldVersion: undefined,
      problem: undefined,
    },
    ...machineValues(isMember),
    ...other,
  };
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { value }])) as unknown as Facts;
}

/** The machine beside the agent, in good order. */
function machineValues(isMember: boolean) {
  return {
    ground: {
      uid: 0,
      kernel: "6.1.0-28-amd64",
      cgroups: {
        version: 2,
        controllers: ["cpuset", "cpu", "io", "memory", "hugetlb", "pids"],
        readOnly: [],
        withheld: [],
      },
      swaps: [],
      hostName: "node-1",
      hostAddresses: ["10.0.0.7"],
      machineId: "0123456789abcdef0123456789abcdef",
      bootedAt: labNow - dayMs,
      now: labNow,
      inContainer: false,
      hasSystemd: true,
    },
    kernel: {
      optionsFrom: "/boot/config",
      features: Object.fromEntries(featureNames.map((name) => [name, { has: true, how: "/boot/config has it" }])),
      seccomp: true,
      settings: kernelSettings,
    },
    network: {
      settings: {
        "ipv4/ip_forward": "1",
        "bridge/bridge-nf-call-iptables": "1",
        "bridge/bridge-nf-call-ip6tables": "1",
      },
      iptables: { state: "there", version: "1.8.9", mode: "nf_tables", legacyTables: [] },
      resolver: { path: "/etc/resolv.conf", nameServers: ["10.0.0.2"] },
      hasSystemdResolved: false,
      listeners: [10250, 10248].map((port) => ({ port, isOurs: true })),
      firewalls: [],
      proxy: undefined,
      interfaces: [],
      uplink: "eth0",
      routes: [],
    },
    runtime: {
      state: "answers",
      endpoint: "unix:///run/containerd/containerd.sock",
      tookMs: 3,
      name: "containerd",
      version: "2.1.4",
      conditions: ["RuntimeReady", "NetworkReady"].map((type) => ({ type, status: true, message: "" })),
      cgroupDriver: "systemd",
      configuredDriver: undefined,
      offersEvents: true,
      sandboxImage: { name: "pause:3.10", isThere: true, isPinned: true },
      cni: {
        configDir: "/etc/cni/net.d",
        configs: ["10-bridge.conflist"],
        missingPlugins: [],
        binDirs: ["/opt/cni/bin"],
      },
      strayShims: [],
      imageDisk: { path: "/var/lib/containerd", availableBytes: 50e9, capacityBytes: 100e9 },
    },
    disk: {
      fileSystems: [
        {
          use: "nodefs",
          path: "/var/lib/kubelet",
          availableBytes: 50e9,
          capacityBytes: 100e9,
          inodesFree: 5e6,
          inodes: 6e6,
          lossPerSecond: undefined,
        },
      ],
      readOnly: [],
      otherRoots: [],
      orphans: [],
      logs: { maxSize: "10Mi", maxFiles: 5, largest: undefined },
    },
    time: { aheadOfApiMs: isMember ? 100 : undefined, keptBy: "chronyd" },
    api: isMember
      ? {
          kubeconfig: "/etc/kubernetes/kubelet.conf",
          server: "https://10.0.0.1:6443",
          names: { ok: true, note: "10.0.0.1" },
          tcp: { ok: true, note: "answers" },
          tls: { ok: true, note: "valid" },
          answer: {
            status: 200,
            aheadMs: 100,
            version: "v1.34.1",
            podCidrs: ["10.244.1.0/24"],
            rights: [{ what: "watch pods", allowed: true }],
          },
        }
      : undefined,
    sameMachines: isMember ? { state: "asked", looked: 3, isAll: true, names: [] } : undefined,
    pods: { pods: [], waiting: [], probes: [], pidLimits: [], now: labNow },
    kernelLog: { records: [] },
  } as const satisfies Partial<FactValues>;
}

const featureNames = [
  ...[
    "namespaces",
    "overlay",
    "veth",
    "bridge",
    "br_netfilter",
    "nf_conntrack",
    "xt_comment",
    "xt_mark",
    "seccomp",
    "keys",
  ],
];

const kernelSettings = {
  "fs/inotify/max_user_watches": 524_288,
  "fs/inotify/max_user_instances": 1_024,
  "fs/nr_open": 1_048_576,
  "kernel/pid_max": 4_194_304,
  "kernel/keys/root_maxkeys": 1_000_000,
  "kernel/keys/root_maxbytes": 25_000_000,
  "kernel/panic": 10,
  "kernel/panic_on_oops": 1,
  "vm/overcommit_memory": 1,
  "vm/panic_on_oom": 0,
  "net/netfilter/nf_conntrack_max": 262_144,
  "net/netfilter/nf_conntrack_count": 900,
};

export function file(path: string, mode = 0o600, uid = 0, gid = 0): FileFact {
  return { path, state: "there", mode, uid, gid };
}

/** One that is valid for another year, signed by somebody else. */
export function certificate(
  use: CertificateFact["use"],
  where: string,
  other: {
    readonly isSelfSigned?: boolean;
    readonly notAfter?: number;
    readonly keyMode?: number;
    readonly key?: "other";
  } = {},
): CertificateFact {
  const { isSelfSigned = false, notAfter = labNow + 365 * dayMs, keyMode = 0o600 } = other;
  const hasKey = use === "client" || use === "serving";
  return {
    use,
    where,
    file: file(where),
    content: {
      state: "usable",
      certificates: [
        {
          subject: "CN=node-1",
          issuer: "CN=lab",
          isSelfSigned,
          notBefore: labNow - dayMs,
          notAfter,
          names: ["node-1", "10.0.0.7"],
        },
      ],
      key: hasKey
        ? { state: other.key ?? "matches", file: file(where.replace(/\.crt$/, ".key"), keyMode) }
        : { state: "none" },
    },
  };
}

export function labSelf(isMember: boolean, other: Partial<AgentSelf> = {}): AgentSelf {
  const kept = { notBefore: labNow - 30 * dayMs, notAfter: labNow + 335 * dayMs, dueAt: labNow + 250 * dayMs };
  return {
    version: "0.1.0",
    kubeletVersion: "v1.34.0",
    pid: 7,
    startedAt: labNow - dayMs,
    now: labNow,
    leavesHostAlone: false,
    health: isMember ? [{ name: "lease", health: { state: "ok" }, sinceMs: dayMs, provenMs: 4_000 }] : [],
    certificates: isMember ? { client: { kept, failures: 0 } } : {},
    watches: isMember ? [{ of: "pods", hasSynced: true, heardMs: 12_000 }] : [],
    ...(isMember && { events: { waiting: 0, lost: 3 } }),
    ...other,
  };
}
