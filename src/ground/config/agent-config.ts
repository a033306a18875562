import type { FeatureGates } from "./gates/gates.ts";
import type { KubeletConfiguration } from "./kubelet-configuration.ts";
import type { HostPort } from "./text/host-port.ts";

/** Everything the command line and the configuration files say, checked and frozen. Nothing else reads argv or files. */
export interface AgentConfig {
  readonly kubelet: KubeletConfiguration;
  readonly flags: KubeletFlags;
  readonly gates: FeatureGates;
  /** --hostname-override or the machine's hostname, trimmed, in lower case. */
  readonly nodeName: string;
  /** The Kubernetes version to report; --version=vX.Y.Z-suffix changes it. */
  readonly reportedVersion: string;
  /** Every flag by name with its value as text, given or default, for the log and for people. */
  readonly flagTexts: Readonly<Record<string, string>>;
  readonly warnings: readonly ConfigWarning[];
  /**
   * Where each value came from, by field path (`authentication.webhook.enabled`), by key of a map
   * (`evictionHard["memory.available"]`) and by flag (`--root-dir`). What is absent is the built-in default.
   */
  readonly origins: Readonly<Record<string, Origin>>;
}

/** The flags that have no field in the configuration file. */
export interface KubeletFlags {
  /** --config; empty for none. */
  readonly configFile: string;
  readonly configDir: string;
  /** Empty: the configuration is read once, at the start. */
  readonly dynamicConfigDir: string;
  /** namespace/name or namespace/name/key; empty for none. */
  readonly dynamicConfigMap: string;
  readonly dynamicConfigTrialMs: number;
  /** Empty means standalone: no API server. */
  readonly kubeconfig: string;
  readonly bootstrapKubeconfig: string;
  readonly hostnameOverride: string;
  /** None, one, or one of each family. `0.0.0.0` and `::` ask for the default address of that family. */
  readonly nodeIPs: readonly string[];
  readonly certDir: string;
  readonly cloudProvider: "" | "external";
  /** A program or an http(s) address; empty: no cloud is asked. */
  readonly cloudInstance: string;
  readonly rootDir: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
  /** Undefined: there is no port for the dashboard. */
  readonly dashboardAddress: HostPort | undefined;
  readonly lockFile: string;
  readonly exitOnLockContention: boolean;
  readonly runtimeCgroups: string;
  readonly imageCredentialProviderConfig: string;
  readonly imageCredentialProviderBinDir: string;
  readonly podInfraContainerImage: string;
  readonly minimumContainerTTLDurationMs: number;
  readonly maximumDeadContainersPerContainer: number;
  /** Negative is no limit. */
  readonly maximumDeadContainers: number;
  readonly experimentalMounterPath: string;
  readonly experimentalAllocatableIgnoreEviction: boolean;
  readonly housekeepingIntervalMs: number;
}

export type Origin =
  | { readonly from: "default"; readonly because?: string }
  | { readonly from: "file"; readonly path: string; readonly line: number }
  | { readonly from: "drop-in"; readonly index: number; readonly path: string; readonly line: number }
  | { readonly from: "flag"; readonly flag: string };

export interface ConfigWarning {
  /** A `deprecated-flag` goes to stderr as it is, as the kubelet prints it; the others are log lines. */
  readonly kind: "deprecated-flag" | "config-file" | "feature-gate" | "note";
  readonly message: string;
}

/** One thing that is wrong, in words that name the field, what was found and what is wanted. */
export interface ConfigProblem {
  readonly message: string;
  /** Field path or flag it is about, if it is about one. */
  readonly field?: string;
  /** Where the offending value was written, e.g. `/etc/kubelet.yaml:12:3`. */
  readonly place?: string;
}

export type LoadResult =
  | { readonly kind: "config"; readonly config: AgentConfig }
  | { readonly kind: "help"; readonly text: string }
  | { readonly kind: "version"; readonly text: string }
  | InvalidConfig;

export interface InvalidConfig {
  readonly kind: "invalid";
  /** The whole complaint in one line, in the form the kubelet would give it. */
  readonly message: string;
  /** The start of the message: at which step of the start the agent gives up; empty where the kubelet says nothing. */
  readonly step: string;
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly ConfigWarning[];
}

/** What loading needs of the machine; handed in so that tests can be the machine. */
export interface ConfigIo {
  readonly cwd: string;
  /** Rejects as fs.readFile does. */
  readFile(path: string): Promise<Uint8Array>;
  /** Rejects as fs.readdir does; `kind` does not follow symbolic links. */
  listDir(path: string): Promise<readonly DirEntry[]>;
  /** What is at the path itself, not behind a symbolic link; rejects as fs.lstat does. */
  kindOf(path: string): Promise<DirEntry["kind"]>;
  hostname(): string;
  cgroupVersion(): Promise<1 | 2>;
  /** A cpuset such as "0-7"; undefined when unknown, then nothing is checked against it. */
  onlineCpus(): Promise<string | undefined>;
}

export interface DirEntry {
  readonly name: string;
  readonly kind: "file" | "directory" | "symlink" | "other";
}
