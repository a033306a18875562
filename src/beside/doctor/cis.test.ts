// Every row of the benchmark: one set-up that breaks it, one that mends it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { certificate, file, labFacts, labNow, labSelf, type SetUp } from "../../../test/support/doctor-lab.ts";
import type { Check, Judgement } from "./check.ts";
import { cisFileChecks } from "./checks/cis-files.ts";
import { cisSettingChecks } from "./checks/cis-settings.ts";
import type { FactValues } from "./facts.ts";

const configPath = "/var/lib/kubelet/config.yaml";
const kubeconfig = "/etc/kubernetes/kubelet.conf";
const checks = new Map([...cisFileChecks, ...cisSettingChecks].map((check) => [check.id, check]));
const dayMs = 86_400_000;

/** A member of a cluster whose file says these lines. */
function member(yaml = "", ...flags: readonly string[]): SetUp {
  const lines = `authentication: {x509: {clientCAFile: /etc/kubernetes/pki/ca.crt}}\n${yaml}`;
  return { argv: [`--config=${configPath}`, `--kubeconfig=${kubeconfig}`, ...flags], files: { [configPath]: lines } };
}

/** Flags only: the other set of defaults. */
function bare(...flags: readonly string[]): SetUp {
  return { argv: [`--kubeconfig=${kubeconfig}`, ...flags] };
}

async function look(id: string, setUp: SetUp, other: Partial<FactValues> = {}): Promise<Judgement> {
  const check = checks.get(id) as Check;
  return check.look(await labFacts(setUp, other));
}

interface Case {
  readonly setUp: SetUp;
  readonly facts?: Partial<FactValues>;
}

interface Row {
  readonly broken: Case;
  readonly state?: "fail" | "warn";
  /** What the fix must say. */
  readonly fix: RegExp;
  readonly mended: Case;
}

const unit = (mode: number, uid = 0): Case => ({
  setUp: member(),
  facts: {
    unit: {
      kind: "unit",
      name: "k.service",
      files: [file("/etc/systemd/system/k.service"), file("/etc/systemd/system/k.service.d/10-x.conf", mode, uid)],
      addressDeny: undefined,
    },
  },
});
const proxy = (mode: number, uid = 0, metrics = "127.0.0.1:10249"): Case => ({
  setUp: member(),
  facts: {
    kubeProxy: {
      pid: 9,
      inContainer: false,
      kubeconfig: { file: file("/etc/kubernetes/proxy.conf", mode, uid), holdsSecrets: true },
      metricsBindAddress: { value: metrics, from: "flag --metrics-bind-address of kube-proxy" },
    },
  },
});
const files = (name: "config" | "kubeconfig", mode: number, uid = 0): Case => ({
  setUp: member(),
  facts: {
    configFiles: {
      config: [file(configPath)],
      kubeconfig: [file(kubeconfig)],
      clientCa: undefined,
      [name]: [file("/etc/a"), file("/etc/b", mode, uid)],
    },
  },
});
const authority = (mode: number, uid = 0): Case => ({
  setUp: member(),
  facts: { configFiles: { config: [], kubeconfig: [], clientCa: file("/etc/ca.crt", mode, uid) } },
});
const only = (setUp: SetUp): Case => ({ setUp });
const strong = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";

const rows: Readonly<Record<string, Row>> = {
  "4.1.1": {
    broken: unit(0o644),
    fix: /^chmod 600 \/etc\/systemd\/system\/k\.service\.d\/10-x\.conf$/,
    mended: unit(0o600),
  },
  "4.1.2": { broken: unit(0o600, 1000), fix: /^chown root:root \/etc/, mended: unit(0o600) },
  "4.1.3": { broken: proxy(0o640), fix: /^chmod 600 \/etc\/kubernetes\/proxy\.conf$/, mended: proxy(0o400) },
  "4.1.4": { broken: proxy(0o600, 1000), fix: /^chown root:root/, mended: proxy(0o600) },
  "4.1.5": { broken: files("kubeconfig", 0o644), fix: /^chmod 600 \/etc\/b$/, mended: files("kubeconfig", 0o600) },
  "4.1.6": {
    broken: files("kubeconfig", 0o600, 1),
    fix: /^chown root:root \/etc\/b$/,
    mended: files("kubeconfig", 0o600),
  },
  "4.1.7": { broken: authority(0o664), fix: /^chmod 644 \/etc\/ca\.crt$/, mended: authority(0o644) },
  "4.1.8": { broken: authority(0o644, 1), fix: /^chown root:root/, mended: authority(0o644) },
  "4.1.9": { broken: files("config", 0o644), fix: /^chmod 600 \/etc\/b$/, mended: files("config", 0o600) },
  "4.1.10": { broken: files("config", 0o600, 1), fix: /^chown root:root \/etc\/b$/, mended: files("config", 0o600) },
  "4.2.1": {
    broken: only({
      argv: [`--config=${configPath}`],
      files: {
        [configPath]:
          "authentication:\n  webhook: {enabled: false}\n  anonymous:\n    enabled: true\nauthorization: {mode: AlwaysAllow}\n",
      },
    }),
    fix: /in \/var\/lib\/kubelet\/config\.yaml, line 6: set authentication\.anonymous\.enabled to false/,
    mended: only(member()),
  },
  "4.2.2": {
    broken: only(bare("--anonymous-auth=false")),
    fix: /--authorization-mode=Webhook/,
    mended: only(member()),
  },
  "4.2.3": { broken: only(bare()), fix: /--client-ca-file=/, mended: only(member()) },
  "4.2.4": { broken: only(bare()), fix: /--read-only-port=0/, mended: only(member()) },
  "4.2.5": {
    broken: only(bare("--streaming-connection-idle-timeout=0")),
    fix: /--streaming-connection-idle-timeout=4h/,
    mended: only(member("streamingConnectionIdleTimeout: 5m")),
  },
  "4.2.6": {
    broken: only(member("makeIPTablesUtilChains: false")),
    fix: /makeIPTablesUtilChains to true/,
    mended: only(member()),
  },
  "4.2.7": {
    broken: only(member("", "--hostname-override=other")),
    state: "warn",
    fix: /AWS and OpenStack/,
    mended: only(member()),
  },
  "4.2.8": {
    broken: only(member("eventRecordQPS: 0")),
    state: "warn",
    fix: /eventRecordQPS to 50/,
    mended: only(member("eventRecordQPS: 5")),
  },
  "4.2.9": {
    broken: {
      setUp: member("tlsCertFile: /s.crt\ntlsPrivateKeyFile: /s.key"),
      facts: { certificates: [certificate("serving", "/s.crt", { isSelfSigned: true })] },
    },
    fix: /serverTLSBootstrap: true/,
    mended: only(member("tlsCertFile: /s.crt\ntlsPrivateKeyFile: /s.key")),
  },
  "4.2.10": {
    broken: only(member()),
    fix: /rotateCertificates: true/,
    mended: only(member("rotateCertificates: true")),
  },
  "4.2.11": {
    broken: only(member()),
    fix: /serverTLSBootstrap: true/,
    mended: only(member("serverTLSBootstrap: true")),
  },
  "4.2.12": {
    broken: only(member("tlsCipherSuites: [TLS_RSA_WITH_AES_128_CBC_SHA]")),
    fix: /set tlsCipherSuites to \[/,
    mended: only(member(`tlsCipherSuites: [${strong}]`)),
  },
  "4.2.13": { broken: only(member()), fix: /podPidsLimit: 4096/, mended: only(member("podPidsLimit: 4096")) },
  "4.2.14": { broken: only(member()), fix: /seccompDefault: true/, mended: only(member("seccompDefault: true")) },
  "4.3.1": {
    broken: proxy(0o600, 0, "0.0.0.0:10249"),
    fix: /metricsBindAddress: "127\.0\.0\.1:10249"/,
    mended: proxy(0o600),
  },
};

test("every row of the benchmark is here; 4.2.15 is information", () => {
  assert.deepEqual(
    [...checks.keys()].filter((id) => id !== "4.2.15"),
    Object.keys(rows),
  );
});

for (const [id, { broken, state = "fail", fix, mended }] of Object.entries(rows)) {
  test(`${id} broken and mended`, async () => {
    const found = await look(id, broken.setUp, broken.facts);
    assert.equal(found.state, state, found.seen);
    assert.match(found.fix ?? "", fix);
    assert.equal(
      (await look(id, mended.setUp, mended.facts)).state,
      "pass",
      (await look(id, mended.setUp, mended.facts)).seen,
    );
  });
}

const others: readonly (readonly [what: string, id: string, Case, state: Judgement["state"], seen: RegExp])[] = [
  [
    "a file that can't be looked at is unknown",
    "4.1.9",
    {
      setUp: member(),
      facts: {
        configFiles: {
          config: [{ path: "/x", state: "unreadable", problem: "EACCES" }],
          kubeconfig: [],
          clientCa: undefined,
        },
      },
    },
    "unknown",
    /\/x: EACCES/,
  ],
  ["no systemd", "4.1.1", { setUp: member(), facts: { unit: { kind: "no systemd" } } }, "n/a", /systemd does not run/],
  [
    "no unit",
    "4.1.1",
    { setUp: member(), facts: { unit: { kind: "no unit", looked: ["nodelet.service"] } } },
    "n/a",
    /looked for nodelet\.service/,
  ],
  ["stand-alone has no kubeconfig", "4.1.5", only({ argv: [] }), "n/a", /stand-alone/],
  ["flags only have no file", "4.1.9", only(bare()), "n/a", /said by flags/],
  [
    "a proxy in a pod whose kubeconfig holds no secret",
    "4.1.3",
    {
      setUp: member(),
      facts: {
        kubeProxy: {
          pid: 9,
          inContainer: true,
          kubeconfig: { file: file("/k", 0o644), holdsSecrets: false },
          metricsBindAddress: { value: "", from: "" },
        },
      },
    },
    "n/a",
    /runs in a pod/,
  ],
  [
    "an authority that has ended",
    "4.2.3",
    {
      setUp: member(),
      facts: { certificates: [certificate("authorities of clients", "/ca", { notAfter: labNow - dayMs })] },
    },
    "fail",
    /no certificate in .* is valid now/,
  ],
  [
    "an authority that ends soon",
    "4.2.3",
    {
      setUp: member(),
      facts: { certificates: [certificate("authorities of clients", "/ca", { notAfter: labNow + 20 * dayMs })] },
    },
    "warn",
    /in 20 days/,
  ],
  [
    "an authority that is not there",
    "4.2.3",
    {
      setUp: member(),
      facts: {
        certificates: [{ use: "authorities of clients", where: "/ca", file: undefined, content: { state: "absent" } }],
      },
    },
    "fail",
    /is not there/,
  ],
  ["nothing is served", "4.2.1", only({ argv: ["--enable-server=false"] }), "n/a", /not served/],
  [
    "the read-only port is open in spite of the setting",
    "4.2.4",
    {
      setUp: member(),
      facts: { network: { listeners: [{ port: 10255, isOurs: true }] } as unknown as FactValues["network"] },
    },
    "fail",
    /listens on 10255/,
  ],
  [
    "another program on 10255 is not ours",
    "4.2.4",
    {
      setUp: member(),
      facts: { network: { listeners: [{ port: 10255, isOurs: false }] } as unknown as FactValues["network"] },
    },
    "pass",
    /is 0/,
  ],
  [
    "chains that the agent was told not to make",
    "4.2.6",
    { setUp: member(), facts: { agent: running({ leavesHostAlone: true }) } },
    "warn",
    /leave the machine/,
  ],
  ["events that were dropped are told", "4.2.8", only(member()), "pass", /3 events were dropped/],
  [
    "the API server has not signed yet",
    "4.2.9",
    {
      setUp: member("serverTLSBootstrap: true"),
      facts: { certificates: [{ use: "serving", where: "/c.pem", file: undefined, content: { state: "absent" } }] },
    },
    "fail",
    /not signed one yet/,
  ],
  [
    "signed by the API server",
    "4.2.9",
    only(member("serverTLSBootstrap: true")),
    "pass",
    /signed through the API server/,
  ],
  [
    "a key that others can read",
    "4.2.9",
    {
      setUp: member("serverTLSBootstrap: true"),
      facts: { certificates: [certificate("serving", "/c.crt", { keyMode: 0o640 })] },
    },
    "fail",
    /\/c\.key can be read by others/,
  ],
  [
    "a key of another certificate",
    "4.2.9",
    {
      setUp: member("serverTLSBootstrap: true"),
      facts: { certificates: [certificate("serving", "/c.crt", { key: "other" })] },
    },
    "fail",
    /the key is not that of/,
  ],
  ["neither file nor signer", "4.2.9", only(member()), "fail", /self-signed/],
  [
    "a token instead of a certificate",
    "4.2.10",
    { setUp: member(), facts: { certificates: [] } },
    "n/a",
    /something else than a certificate/,
  ],
  ["stand-alone has no client certificate", "4.2.10", only({ argv: [] }), "n/a", /stand-alone/],
  [
    "the next rotation is told",
    "4.2.10",
    only(member("rotateCertificates: true")),
    "pass",
    /the next is due in 250 days/,
  ],
  [
    "a request that nobody signs",
    "4.2.10",
    {
      setUp: member("rotateCertificates: true"),
      facts: { agent: running({ certificates: { client: { failures: 1, askingSince: labNow - 11 * 60_000 } } }) },
    },
    "warn",
    /for 11 min/,
  ],
  [
    "the gate is off",
    "4.2.11",
    only(member("featureGates: {RotateKubeletServerCertificate: false}")),
    "fail",
    /gate RotateKubeletServerCertificate/,
  ],
  [
    "a file that somebody else renews",
    "4.2.11",
    only(member("tlsCertFile: /s.crt\ntlsPrivateKeyFile: /s.key")),
    "manual",
    /whoever writes it/,
  ],
  [
    "a serving request that nobody signs",
    "4.2.11",
    {
      setUp: member("serverTLSBootstrap: true"),
      facts: { agent: running({ certificates: { server: { failures: 0, askingSince: labNow - 3_600_000 } } }) },
    },
    "warn",
    /for 60 min/,
  ],
  ["no suites are chosen", "4.2.12", only(member()), "fail", /CBC/],
  [
    "the other spelling",
    "4.2.12",
    only(member("tlsCipherSuites: [TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305]")),
    "pass",
    /refused all others/,
  ],
  [
    "TLS 1.1",
    "4.2.12",
    only(member(`tlsMinVersion: VersionTLS11\ntlsCipherSuites: [${strong}]`)),
    "fail",
    /VersionTLS11/,
  ],
  ["TLS 1.3 has strong suites only", "4.2.12", only(member("tlsMinVersion: VersionTLS13")), "pass", /only TLS 1\.3/],
  [
    "a handshake that proves the opposite",
    "4.2.12",
    {
      setUp: member(`tlsCipherSuites: [${strong}]`),
      facts: {
        serving: { state: "answers", where: "h:1", weakSuite: "AES128-SHA", oldVersion: undefined, problem: undefined },
      },
    },
    "fail",
    /agreed to AES128-SHA/,
  ],
  [
    "a pod without the limit",
    "4.2.13",
    {
      setUp: member("podPidsLimit: 100"),
      facts: {
        pods: {
          pods: [],
          waiting: [],
          probes: [],
          now: labNow,
          pidLimits: [
            { cgroup: "/a", limit: 100 },
            { cgroup: "/b", limit: undefined },
          ],
        },
      },
    },
    "fail",
    /1 of 2 pods have another: \/b has no limit/,
  ],
  [
    "a kernel without seccomp",
    "4.2.14",
    { setUp: member("seccompDefault: true"), facts: { kernel: { seccomp: false } as FactValues["kernel"] } },
    "fail",
    /no seccomp/,
  ],
  ["information only", "4.2.15", only(member()), "manual", /sets no IPAddressDeny/],
  ["no kube-proxy", "4.3.1", only(member()), "n/a", /no kube-proxy/],
];

for (const [what, id, { setUp, facts }, state, seen] of others) {
  test(`${id}: ${what}`, async () => {
    const found = await look(id, setUp, facts);
    assert.equal(found.state, state, found.seen);
    assert.match(found.seen, seen);
  });
}

function running(other: Parameters<typeof labSelf>[1]): FactValues["agent"] {
  return {
    state: "running",
    socket: "/s",
    self: labSelf(true, other),
    pods: [],
    waiting: [],
    config: undefined as never,
  };
}

test("a setting's place is told: file with line, drop-in, flag, default", async () => {
  const dropIn = "/etc/kubelet.d/10-pids.conf";
  const setUp = member("seccompDefault: true", "--config-dir=/etc/kubelet.d", "--read-only-port=0");
  const facts = await labFacts({ ...setUp, files: { ...setUp.files, [dropIn]: "podPidsLimit: 9\n" } });
  const from = (id: string): unknown => checks.get(id)?.look(facts).source;
  assert.deepEqual(from("4.2.14"), { text: `file ${configPath}:4`, place: { file: configPath, line: 4 } });
  assert.deepEqual(from("4.2.13"), { text: `drop-in 1 ${dropIn}:3`, place: { file: dropIn, line: 3 } });
  assert.deepEqual(from("4.2.4"), { text: "flag --read-only-port" });
  assert.deepEqual(from("4.2.10"), { text: "default" });
});

test("a service file that belongs to a package is replaced, since /usr may not be writable", async () => {
  const packaged = {
    unit: {
      kind: "unit",
      name: "k.service",
      files: [file("/usr/lib/systemd/system/k.service", 0o644)],
      addressDeny: undefined,
    },
  } as const;
  const { fix } = await look("4.1.1", member(), packaged);
  assert.equal(
    fix,
    "install -D -m 600 -o root -g root /usr/lib/systemd/system/k.service /etc/systemd/system/k.service && systemctl daemon-reload",
  );
});
