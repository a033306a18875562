// Five ways to start an agent, each as it is found in the field and hardened: no finding but those that are true.
import assert from "node:assert/strict";
import { test } from "node:test";
import { certificate, labFacts, type SetUp } from "../../../test/support/doctor-lab.ts";
import type { FactValues } from "./facts.ts";
import { checkGroups } from "./groups.ts";

const suites = "[TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]";
const hardening = `serverTLSBootstrap: true\ntlsCipherSuites: ${suites}\npodPidsLimit: 4096\nseccompDefault: true\n`;

/** What kubeadm writes. */
const kubeadmConfig = `authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 0s
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
authorization:
  mode: Webhook
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
healthzBindAddress: 127.0.0.1
healthzPort: 10248
rotateCertificates: true
staticPodPath: /etc/kubernetes/manifests
`;
const kubeadmFlags = [
  "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
  "--kubeconfig=/etc/kubernetes/kubelet.conf",
  "--config=/var/lib/kubelet/config.yaml",
];
const k3sDir = "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d";
const k3sConfig = `authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: /var/lib/rancher/k3s/agent/client-ca.crt}
authorization: {mode: Webhook}
cgroupDriver: systemd
failSwapOn: false
readOnlyPort: 0
rotateCertificates: true
tlsCertFile: /var/lib/rancher/k3s/agent/serving-kubelet.crt
tlsPrivateKeyFile: /var/lib/rancher/k3s/agent/serving-kubelet.key
`;
const standAlone =
  "authentication: {webhook: {enabled: false}, anonymous: {enabled: true}}\nauthorization: {mode: AlwaysAllow}\n";

interface Named extends SetUp {
  readonly name: string;
  /** Everything that is told, in the order of the report. */
  readonly found: readonly string[];
  readonly facts?: Partial<FactValues>;
}

const setUps: readonly Named[] = [
  {
    name: "kubeadm's file",
    argv: kubeadmFlags,
    files: { "/var/lib/kubelet/config.yaml": kubeadmConfig },
    found: ["fail 4.2.9", "fail 4.2.11", "fail 4.2.12", "fail 4.2.13", "fail 4.2.14"],
  },
  {
    name: "kubeadm's file, hardened",
    argv: kubeadmFlags,
    files: { "/var/lib/kubelet/config.yaml": kubeadmConfig + hardening },
    found: [],
  },
  {
    name: "bare flags",
    argv: ["--kubeconfig=/etc/kubernetes/kubelet.conf"],
    found: [
      ...["fail 4.2.1", "fail 4.2.2", "fail 4.2.3", "fail 4.2.4", "fail 4.2.9", "fail 4.2.10"],
      ...["fail 4.2.11", "fail 4.2.12", "fail 4.2.13", "fail 4.2.14"],
    ],
  },
  {
    name: "bare flags, hardened",
    argv: [
      ...["--kubeconfig=/etc/kubernetes/kubelet.conf", "--anonymous-auth=false", "--authorization-mode=Webhook"],
      ...["--authentication-token-webhook=true", "--client-ca-file=/etc/kubernetes/pki/ca.crt", "--read-only-port=0"],
      ...[
        "--rotate-certificates=true",
        "--rotate-server-certificates=true",
        "--pod-max-pids=4096",
        "--seccomp-default=true",
      ],
      `--tls-cipher-suites=${suites.replace(/[[\] ]/g, "")}`,
    ],
    found: [],
  },
  {
    name: "drop-ins that harden a loose file",
    argv: [...kubeadmFlags, "--config-dir=/etc/kubelet.d"],
    files: {
      "/var/lib/kubelet/config.yaml": kubeadmConfig
        .replace("enabled: false", "enabled: true")
        .replace("rotateCertificates: true", "rotateCertificates: false"),
      "/etc/kubelet.d/10-access.conf": "authentication: {anonymous: {enabled: false}}\nrotateCertificates: true\n",
      "/etc/kubelet.d/20-hardening.conf": hardening,
    },
    found: [],
  },
  {
    name: "drop-ins that loosen a hard file",
    argv: [...kubeadmFlags, "--config-dir=/etc/kubelet.d"],
    files: {
      "/var/lib/kubelet/config.yaml": kubeadmConfig + hardening,
      "/etc/kubelet.d/99-debug.conf": "readOnlyPort: 10255\n",
    },
    found: ["fail 4.2.4"],
    facts: { certificates: member("/etc/kubernetes/pki/ca.crt") },
  },
  {
    name: "a directory of drop-ins alone, as k3s has it",
    argv: [
      "--kubeconfig=/var/lib/rancher/k3s/agent/kubelet.kubeconfig",
      `--config-dir=${k3sDir}`,
      "--read-only-port=0",
    ],
    files: {
      [`${k3sDir}/00-k3s-defaults.conf`]: k3sConfig,
      [`${k3sDir}/10-hardening.conf`]: hardening.replace("serverTLSBootstrap: true\n", ""),
    },
    // Who writes the serving certificate renews it: that is for a person to see.
    found: ["manual 4.2.11"],
  },
  {
    name: "stand-alone, open to all",
    argv: ["--config=/etc/nodelet.yaml"],
    files: { "/etc/nodelet.yaml": standAlone },
    found: ["fail 4.2.1", "fail 4.2.2", "fail 4.2.3", "fail 4.2.9", "fail 4.2.12", "fail 4.2.13", "fail 4.2.14"],
  },
  {
    name: "stand-alone, nothing served",
    argv: ["--config=/etc/nodelet.yaml"],
    files: { "/etc/nodelet.yaml": `${standAlone}enableServer: false\npodPidsLimit: 4096\nseccompDefault: true\n` },
    found: [],
  },
];

function member(ca: string): FactValues["certificates"] {
  return [certificate("authorities of clients", ca), certificate("client", "/c.pem"), certificate("serving", "/s.pem")];
}

for (const { name, found, facts, ...setUp } of setUps) {
  test(`${name}: ${found.length === 0 ? "nothing" : found.join(", ")}`, async () => {
    const lab = await labFacts(setUp, facts);
    const told = checkGroups.flatMap(({ checks }) =>
      checks
        .map((check) => ({ id: check.id, ...check.look(lab) }))
        .filter(({ state }) => state !== "pass" && state !== "n/a"),
    );
    // Information that is never wrong.
    const judged = told.filter(({ id }) => id !== "4.2.15");
    assert.deepEqual(
      judged.map(({ state, id }) => `${state} ${id}`),
      found,
      JSON.stringify(judged, undefined, 1),
    );
    for (const { id, fix } of judged.filter(({ state }) => state === "fail"))
      assert.ok(fix !== undefined && fix !== "", `${id} says no fix`);
  });
}
