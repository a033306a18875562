import type { EffectiveSetting } from "../../../ground/config/index.ts";
import { type Check, failed, type Judgement, manual, mend, notApplicable, passed, sourceOf, warned } from "../check.ts";
import { type ConfigFacts, type Facts, known, setting, settingText } from "../facts.ts";
import { clientCertificateRotates, servingCertificateIsSet, servingCertificateRotates } from "./cis-certificates.ts";
import { clientAuthorityIsSet } from "./client-authority.ts";
import { onlyStrongSuites } from "./strong-suites.ts";

export const cisSettingChecks: readonly Check[] = [
  {
    id: "4.2.1",
    benchmark: "automated",
    title: "Requests without credentials are refused",
    why: "without this anybody who reaches the port asks the node's API in the name of system:anonymous",
    look: whereServed(valued("authentication.anonymous.enabled", "anonymous-auth", { is: "false" })),
  },
  {
    id: "4.2.2",
    benchmark: "automated",
    title: "Requests are authorised, not all allowed",
    why: "with AlwaysAllow everybody who is let in may run commands in every container of the node",
    look: whereServed(requestsAreAuthorised),
  },
  {
    id: "4.2.3",
    benchmark: "automated",
    title: "An authority for client certificates is set",
    why: "the API server proves to the node who it is by a certificate of this authority",
    look: whereServed(clientAuthorityIsSet),
  },
  {
    id: "4.2.4",
    benchmark: "manual",
    title: "The read-only port is closed",
    why: "it tells everybody who reaches it about all pods, without asking who they are",
    look: readOnlyPortIsClosed,
  },
  {
    id: "4.2.5",
    benchmark: "manual",
    title: "Idle streams are not kept for ever",
    why: "streams that nobody uses any more hold connections and memory",
    look: idleStreamsEnd,
  },
  {
    id: "4.2.6",
    benchmark: "automated",
    title: "The agent keeps its iptables chains",
    why: "other parts of a cluster expect the chains that a node agent makes",
    look: chainsAreKept,
  },
  {
    id: "4.2.7",
    benchmark: "manual",
    title: "The node has the name of its machine",
    why: "another name may break certificates and access rules that are made for the machine's own",
    look: nameIsNotOverridden,
  },
  {
    id: "4.2.8",
    benchmark: "manual",
    title: "Events are limited sensibly",
    why: "without a limit one pod that fails in a loop floods the API server; too low a limit hides what happened",
    look: eventsAreLimited,
  },
  {
    id: "4.2.9",
    benchmark: "manual",
    title: "The node serves a certificate that others can check",
    why: "with a self-signed certificate nobody can tell the node from somebody between it and the API server",
    look: servingCertificateIsSet,
  },
  {
    id: "4.2.10",
    benchmark: "automated",
    title: "The client certificate is renewed by itself",
    why: "a node whose certificate runs out leaves the cluster",
    look: clientCertificateRotates,
  },
  {
    id: "4.2.11",
    benchmark: "manual",
    title: "The serving certificate is renewed by itself",
    why: "when it runs out, logs, exec and metrics of the node can't be had any more",
    look: servingCertificateRotates,
  },
  {
    id: "4.2.12",
    benchmark: "manual",
    title: "Only strong ciphers are offered",
    why: "older suites have no forward secrecy or can be attacked",
    look: onlyStrongSuites,
  },
  {
    id: "4.2.13",
    benchmark: "manual",
    title: "The processes of a pod are limited",
    why: "one pod that forks without end would leave no process ids to the others, or to the machine",
    look: podPidsAreLimited,
  },
  {
    id: "4.2.14",
    benchmark: "manual",
    title: "Pods get the default seccomp profile",
    why: "without it every container may use every system call, unless its pod says otherwise",
    look: seccompByDefault,
  },
  {
    id: "4.2.15",
    benchmark: "manual",
    title: "Addresses that the agent may speak to (edition 1.11 only)",
    why: "information: the row was dropped from edition 1.12 of the benchmark",
    look: addressesOfUnit,
  },
  {
    id: "4.3.1",
    benchmark: "automated",
    title: "kube-proxy tells its metrics to this machine only",
    why: "they can be read by everybody who reaches the port",
    look: proxyMetricsAreLocal,
  },
];

type Wanted = { readonly is: string } | { readonly isNot: string; readonly instead: string };

/** A setting that must have a value, or must not. */
function valued(name: string, flag: string, wanted: Wanted): (facts: Facts) => Judgement {
  return (facts) => {
    const config = known(facts.config);
    const found = setting(config, name);
    const value = settingText(config, name);
    const isKept = "is" in wanted ? value === wanted.is : value !== wanted.isNot;
    const seen = `${name} is ${value}`;
    if (isKept) return passed(seen, sourceOf(found.origin));
    const next =
      "is" in wanted
        ? wanted.is === "true" || wanted.is === "false"
          ? wanted.is === "true"
          : wanted.is
        : wanted.instead;
    return failed(seen, mend(config, found, next, flag), sourceOf(found.origin));
  };
}

/** What guards the node's API is no question where there is none. */
function whereServed(look: (facts: Facts) => Judgement): (facts: Facts) => Judgement {
  return (facts) => {
    const isServed = settingText(known(facts.config), "enableServer") !== "false";
    return isServed ? look(facts) : notApplicable("enableServer is false: the node API is not served");
  };
}

/** Without an API server there is nobody who could be asked. */
function requestsAreAuthorised(facts: Facts): Judgement {
  const name = "authorization.mode";
  const judgement = valued(name, "authorization-mode", { isNot: "AlwaysAllow", instead: "Webhook" })(facts);
  const config = known(facts.config);
  if (judgement.state !== "fail" || settingText(config, "--kubeconfig") !== "") return judgement;
  const close = mend(config, setting(config, "enableServer"), false, "enable-server");
  return { ...judgement, fix: `without an API server nobody can be authorised, so close the port: ${close}` };
}

function readOnlyPortIsClosed(facts: Facts): Judgement {
  const config = known(facts.config);
  const found = setting(config, "readOnlyPort");
  const port = Number(found.value ?? 0);
  if (port !== 0) {
    const fix = mend(config, found, 0, "read-only-port");
    return failed(`readOnlyPort is ${port}`, fix, sourceOf(found.origin));
  }
  const network = facts.network;
  const open =
    "value" in network ? network.value.listeners.filter(({ port: each, isOurs }) => each === 10255 && isOurs) : [];
  if (open.length === 0) return passed("readOnlyPort is 0", sourceOf(found.origin));
  return failed("readOnlyPort is 0, but the agent listens on 10255", "restart the agent", sourceOf(found.origin));
}

function idleStreamsEnd(facts: Facts): Judgement {
  const config = known(facts.config);
  const found = setting(config, "streamingConnectionIdleTimeout");
  const value = String(found.value ?? "");
  const note = "v1.34 reads it nowhere, and peers that are gone are cut anyway";
  if (!/^(?:0|0s|0h0m0s)$/.test(value)) {
    return passed(`streamingConnectionIdleTimeout is ${value}; ${note}`, sourceOf(found.origin));
  }
  const fix = mend(config, found, "4h", "streaming-connection-idle-timeout");
  return failed(`streamingConnectionIdleTimeout is ${value}; ${note}`, fix, sourceOf(found.origin));
}

function chainsAreKept(facts: Facts): Judgement {
  const verdict = valued("makeIPTablesUtilChains", "make-iptables-util-chains", { is: "true" })(facts);
  if (verdict.state !== "pass") return verdict;
  const found = setting(known(facts.config), "makeIPTablesUtilChains");
  const source = sourceOf(found.origin);
  const upgrade = "use a release of the agent that acts on it";
  if (found.effect !== "yes")
    return warned(`${verdict.seen}, but no part of the agent acts on it yet`, upgrade, source);
  const agent = "value" in facts.agent ? facts.agent.value : undefined;
  if (agent?.state === "running" && agent.self.leavesHostAlone) {
    const fix = "nothing on a machine of one person; in a cluster start the agent without NODELET_HOST_SETTINGS=leave";
    return warned(
      `${verdict.seen}, but the agent was told to leave the machine's own settings as they are`,
      fix,
      source,
    );
  }
  return verdict;
}

function nameIsNotOverridden(facts: Facts): Judgement {
  const config = known(facts.config);
  const found = setting(config, "--hostname-override");
  const value = String(found.value ?? "");
  if (value === "") return passed("--hostname-override is not given", sourceOf(found.origin));
  const fix =
    "leave the flag out, unless the cloud provider needs it (AWS and OpenStack name nodes by their own rules)";
  return warned(`--hostname-override is ${value}`, fix, sourceOf(found.origin));
}

function eventsAreLimited(facts: Facts): Judgement {
  const config = known(facts.config);
  const found = setting(config, "eventRecordQPS");
  const source = sourceOf(found.origin);
  const agent = "value" in facts.agent ? facts.agent.value : undefined;
  const lost = agent?.state === "running" ? agent.self.events?.lost : undefined;
  const dropped = lost === undefined ? "" : `; ${lost} events were dropped since the agent's start`;
  const value = Number(found.value ?? 0);
  if (value > 0) return passed(`eventRecordQPS is ${value}${dropped}`, source);
  return warned(`eventRecordQPS is 0, which is no limit${dropped}`, mendNumber(config, found, 50, "event-qps"), source);
}

function mendNumber(config: ConfigFacts, found: EffectiveSetting, value: number, flag: string): string {
  return mend(config, found, value, flag);
}

function podPidsAreLimited(facts: Facts): Judgement {
  const config = known(facts.config);
  const found = setting(config, "podPidsLimit");
  const limit = Number(found.value ?? -1);
  const source = sourceOf(found.origin);
  if (limit <= 0) {
    return failed(
      `podPidsLimit is ${limit}, which is no limit`,
      mendNumber(config, found, 4096, "pod-max-pids"),
      source,
    );
  }
  const cgroups = ("value" in facts.pods ? facts.pods.value?.pidLimits : undefined) ?? [];
  const other = cgroups.filter((each) => each.limit !== limit);
  const [first] = other;
  if (first === undefined) {
    return passed(
      `podPidsLimit is ${limit}${cgroups.length > 0 ? `, and ${cgroups.length} pods have it` : ""}`,
      source,
    );
  }
  const shown = first.limit === undefined ? "no limit" : String(first.limit);
  const seen = `podPidsLimit is ${limit}, but ${other.length} of ${cgroups.length} pods have another: ${first.cgroup} has ${shown}`;
  return failed(seen, "restart the agent: it writes the limits of running pods again", source);
}

function seccompByDefault(facts: Facts): Judgement {
  const config = known(facts.config);
  const found = setting(config, "seccompDefault");
  const source = sourceOf(found.origin);
  if (found.value !== true) {
    return failed("seccompDefault is false", mend(config, found, true, "seccomp-default"), source);
  }
  const kernel = "value" in facts.kernel ? facts.kernel.value : undefined;
  if (kernel !== undefined && kernel.seccomp === false) {
    return failed(
      "seccompDefault is true, but the kernel has no seccomp filters",
      "use a kernel with CONFIG_SECCOMP_FILTER",
      source,
    );
  }
  return passed("seccompDefault is true, and the kernel filters system calls", source);
}

function addressesOfUnit(facts: Facts): Judgement {
  const unit = known(facts.unit);
  if (unit.kind !== "unit") return notApplicable("no unit of systemd runs the agent");
  const { addressDeny, name } = unit;
  if (addressDeny === undefined) return manual(`${name} sets no IPAddressDeny`);
  return manual(`${name} sets IPAddressDeny=${addressDeny}`);
}

function proxyMetricsAreLocal(facts: Facts): Judgement {
  const proxy = known(facts.kubeProxy);
  if (proxy === undefined) return notApplicable("no kube-proxy runs on this machine");
  const { value, from } = proxy.metricsBindAddress;
  const seen = `metricsBindAddress is ${value}`;
  if (/^(?:127\.\d+\.\d+\.\d+|localhost|\[::1\]|::1)(?::\d+)?$/.test(value)) return passed(seen, { text: from });
  return failed(seen, 'set metricsBindAddress: "127.0.0.1:10249" in the configuration of kube-proxy', { text: from });
}
