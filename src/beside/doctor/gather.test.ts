// What is gathered from files, processes and ports as they are found.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { createServer, type TlsOptions } from "node:tls";
import { CertificateAuthority } from "../../../test/support/certificates.ts";
import { fileHeader } from "../../../test/support/load-config.ts";
import { never, systemClock } from "../../ground/base/index.ts";
import { examine } from "./examine.ts";
import type { DoctorFinding, DoctorReport } from "./finding.ts";
import { ConfigRefused, gatherConfig } from "./gather/config.ts";
import { HostFiles } from "./gather/files.ts";

const directory = mkdtempSync(join(tmpdir(), "nodelet-gather-"));
after(() => rmSync(directory, { recursive: true, force: true }));

/** Writes files below a directory of their own; the answer is that directory. */
function place(name: string, files: Readonly<Record<string, string>>, mode = 0o600): string {
  const root = join(directory, name);
  mkdirSync(root, { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
    chmodSync(join(root, path), mode);
  }
  return root;
}

const where = {
  clock: systemClock,
  env: {},
  cwd: "/",
  uid: 0,
  socket: join(directory, "none.sock"),
  withinMs: 60_000,
};

async function reportOf(id: string, root: string, flags: readonly string[] = []): Promise<DoctorReport> {
  return await examine({ ...where, root, flags, only: [id] }, never);
}

async function look(id: string, root: string, flags: readonly string[] = []): Promise<DoctorFinding> {
  const { findings } = await reportOf(id, root, flags);
  return findings[0] ?? assert.fail(`there is no ${id}`);
}

const mounts = {
  "proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /sys/fs/cgroup rw - cgroup2 c rw\n",
  "sys/fs/cgroup/cgroup.controllers": "cpu\n",
};
const kubelet = {
  ...mounts,
  "proc/77/comm": "kubelet\n",
  "proc/77/cmdline": "/usr/bin/kubelet\0--anonymous-auth=false\0",
  "run/systemd/system/made-by-systemd": "",
};

test("4.1.1: the unit that the agent runs in, and each of its drop-ins", async () => {
  const unit = "etc/systemd/system/kubelet.service";
  const root = place("unit", {
    ...kubelet,
    "proc/77/cgroup": "0::/system.slice/kubelet.service\n",
    [unit]: "[Service]\nExecStart=/usr/bin/kubelet\n",
  });
  place(
    "unit",
    { [`${unit}.d/10-kubeadm.conf`]: "[Service]\n", "usr/lib/systemd/system/kubelet.service": "hidden by the other" },
    0o644,
  );
  const found = await look("4.1.1", root);
  assert.equal(found.state, "fail", found.seen);
  assert.equal(found.fix, "chmod 600 /etc/systemd/system/kubelet.service.d/10-kubeadm.conf");
  chmodSync(join(root, `${unit}.d/10-kubeadm.conf`), 0o600);
  assert.equal((await look("4.1.1", root)).state, "pass");
});

test("4.1.1: an agent that was started from somebody's session is no service", async () => {
  const root = place(
    "session",
    {
      ...kubelet,
      "proc/77/cgroup": "0::/system.slice/ssh.service\n",
      "etc/systemd/system/ssh.service": "[Service]\nExecStart=/usr/sbin/sshd\n",
    },
    0o644,
  );
  const found = await look("4.1.1", root);
  assert.equal(found.state, "n/a", found.seen);
});

test("4.1.3, 4.3.1: a kube-proxy by the configuration that it names, as it sees files", async () => {
  const config =
    "clientConnection:\n  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf\nmetricsBindAddress: 0.0.0.0:10249\n";
  const root = place(
    "proxy",
    {
      ...mounts,
      "proc/88/comm": "kube-proxy\n",
      "proc/88/cmdline": "/usr/local/bin/kube-proxy\0--config=/var/lib/kube-proxy/config.conf\0",
      "proc/88/root/var/lib/kube-proxy/config.conf": config,
      "proc/88/root/var/lib/kube-proxy/kubeconfig.conf": "users:\n- user:\n    token: secret\n",
    },
    0o644,
  );
  assert.match((await look("4.1.3", root)).fix, /^chmod 600 \/proc\/88\/root\/var\/lib\/kube-proxy\/kubeconfig\.conf$/);
  const metrics = await look("4.3.1", root);
  assert.equal(metrics.state, "fail");
  assert.equal(metrics.from, "file /var/lib/kube-proxy/config.conf of kube-proxy");
});

test("4.1.3: a link of a pod's leads to a file of the pod's, never to one of the machine's", async () => {
  const target = place("target", { secret: "not: [yaml, of, anybody's: concern\n" }, 0o644);
  const root = place(
    "proxy-links",
    {
      ...mounts,
      "proc/88/comm": "kube-proxy\n",
      "proc/88/cmdline": "kube-proxy\0--config=/config\0--kubeconfig=/kubeconfig\0",
      "proc/88/root/data/kubeconfig": "users:\n- user:\n    token: secret\n",
    },
    0o644,
  );
  symlinkSync(`${target}/secret`, join(root, "proc/88/root/config"));
  symlinkSync("/data/../../data/kubeconfig", join(root, "proc/88/root/kubeconfig"));
  const found = await look("4.1.3", root);
  assert.equal(found.state, "unknown", found.seen);
  assert.doesNotMatch(found.seen, /concern/);
  rmSync(join(root, "proc/88/root/config"));
  writeFileSync(join(root, "proc/88/root/config"), "{}");
  assert.equal((await look("4.1.3", root)).fix, "chmod 600 /proc/88/root/data/kubeconfig");
});

test("what a pod calls its processes does not make them agents or proxies of this machine", async () => {
  const steering = "--config=/etc/\u001b]0;owned\u0007.yaml";
  const root = place("names", {
    ...mounts,
    "proc/77/comm": "kubelet\n",
    "proc/77/cmdline": `/usr/bin/kubelet\0${steering}\0`,
    "proc/88/comm": "kube-proxy\n",
    "proc/88/cmdline": "kube-proxy\0--metrics-bind-address=0.0.0.0:1\0",
    "proc/self/ns/x": "",
    "proc/77/ns/x": "",
    "proc/88/ns/x": "",
  });
  symlinkSync("net:[1]", join(root, "proc/self/ns/net"));
  symlinkSync("net:[1]", join(root, "proc/77/ns/net"));
  symlinkSync("net:[2]", join(root, "proc/88/ns/net"));
  assert.equal((await look("4.3.1", root)).state, "n/a");
  const report = await reportOf("config.valid", root);
  assert.equal(report.findings[0]?.state, "fail");
  assert.doesNotMatch(`${report.subject}${report.findings[0]?.seen}`, /\p{Cc}/u);
  rmSync(join(root, "proc/77/ns/net"));
  symlinkSync("net:[2]", join(root, "proc/77/ns/net"));
  assert.match((await reportOf("config.valid", root)).subject, /none runs/);
  assert.equal((await look("agents.one", root)).seen, "none runs");
});

test("mounts of pods are told when no agent runs with their directory, whatever it is called", async () => {
  const uid = "0b3f2e1c-7d0e-4d52-9a54-2f0a1f5e6c11";
  const real = join(directory, "kubelet-of-links");
  const linked = join(directory, "kubelet-by-link");
  mkdirSync(real);
  symlinkSync(real, linked);
  const mountOf = (path: string): string =>
    `3 1 0:9 / ${path}/pods/${uid}/volumes/kubernetes.io~secret/x rw - tmpfs t rw\n`;
  const mountinfo = mounts["proc/self/mountinfo"] + mountOf(real) + mountOf("/run/by-kubelet");
  const running = place("mounts-in-use", {
    ...mounts,
    "proc/self/mountinfo": mountinfo,
    "proc/77/comm": "kubelet\n",
    "proc/77/cmdline": "/usr/bin/kubelet\0--root-dir=/run/by-kubelet\0",
  });
  const flags = [`--root-dir=${linked}`];
  assert.equal((await look("agents.leftovers", running, flags)).state, "pass");
  const gone = place("mounts-left", { ...mounts, "proc/self/mountinfo": mountinfo });
  const found = await look("agents.leftovers", gone, flags);
  assert.equal(found.state, "warn");
  assert.match(found.seen, /^below \/run\/by-kubelet volumes/);
  assert.match(found.fix, /grep -F '?\/run\/by-kubelet\/pods\/'? /);
});

test("of several agents, the one with the root directory that is asked for", async () => {
  const root = place("several", {
    ...mounts,
    "proc/77/comm": "node\n",
    "proc/77/cmdline": "node\0/opt/dist/nodelet.mjs\0--root-dir=/elsewhere\0",
    "proc/78/comm": "kubelet\n",
    "proc/78/cmdline": `kubelet\0--root-dir\0${directory}/\0`,
  });
  assert.match((await reportOf("config.valid", root)).subject, /^kubelet with pid 78,/);
  rmSync(join(root, "proc/78"), { recursive: true });
  assert.match((await reportOf("config.valid", root)).subject, /^nodelet with pid 77,/);
  const chosen = { ...where, root, isChosen: true, only: ["config.valid"] };
  assert.match((await examine(chosen, never)).subject, /^an agent started with --root-dir=.* alone; none runs$/);
});

test("ground.cgroups: in a container of version 2, processes at the top keep controllers from pods", async () => {
  const root = place("withheld", {
    ...mounts,
    "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory hugetlb pids\n",
    "sys/fs/cgroup/cgroup.subtree_control": "cpu pids\n",
    "sys/fs/cgroup/cgroup.type": "domain\n",
    "sys/fs/cgroup/cgroup.procs": "1\n",
  });
  const found = await look("ground.cgroups", root);
  assert.equal(found.state, "fail", found.seen);
  assert.match(found.fix, /echo '\+cpuset \+memory' > \/sys\/fs\/cgroup\/cgroup\.subtree_control$/);
  writeFileSync(join(root, "sys/fs/cgroup/cgroup.procs"), "");
  assert.equal((await look("ground.cgroups", root)).state, "pass");
});

test("4.1.9: the file and every drop-in", async () => {
  const files = place("drop-ins", {
    "kubelet.yaml": `${fileHeader}authentication: {webhook: {enabled: false}}\nauthorization: {mode: AlwaysAllow}\n`,
    "d/10-a.conf": fileHeader,
    "d/below/20-b.conf": fileHeader,
    "d/notes.txt": "",
  });
  chmodSync(join(files, "d/below/20-b.conf"), 0o640);
  const flags = [`--config=${files}/kubelet.yaml`, `--config-dir=${files}/d`];
  const found = await look("4.1.9", place("empty", mounts), flags);
  assert.equal(found.fix, `chmod 600 ${files}/d/below/20-b.conf`);
  assert.deepEqual(found.place, { file: `${files}/d/below/20-b.conf` });
  chmodSync(join(files, "d/below/20-b.conf"), 0o400);
  assert.equal((await look("4.1.9", place("empty", mounts), flags)).state, "pass");
});

test("4.1.5: files with keys that the kubeconfig names, through a link", async () => {
  const files = place("kubeconfig", {
    kubelet: kubeconfigFor("https://127.0.0.1:1", "{client-certificate: current.pem, client-key: current.pem}"),
  });
  place("kubeconfig", { "2026.pem": "-----BEGIN PRIVATE KEY-----" }, 0o644);
  symlinkSync("2026.pem", join(files, "current.pem"));
  const found = await look("4.1.5", place("empty", mounts), [`--kubeconfig=${files}/kubelet`]);
  assert.equal(found.state, "fail", found.seen);
  assert.equal(found.fix, `chmod 600 ${files}/current.pem`);
});

test("4.2.3, 4.2.9: certificates as they are", async () => {
  const authority = await CertificateAuthority.create("lab");
  const served = await authority.issueServer({ commonName: "node-1" }, ["127.0.0.1"]);
  const files = place("pki", {
    "ca.crt": authority.certPem,
    "s.crt": served.certPem,
    "s.key": served.keyPem,
    "none.crt": "nothing",
  });
  const flags = [`--tls-cert-file=${files}/s.crt`, `--tls-private-key-file=${files}/s.key`];
  const empty = place("empty", mounts);
  assert.equal((await look("4.2.3", empty, [`--client-ca-file=${files}/ca.crt`])).state, "pass");
  assert.match((await look("4.2.3", empty, [`--client-ca-file=${files}/none.crt`])).seen, /it holds no certificate/);
  const found = await look("4.2.9", empty, flags);
  assert.equal(found.state, "pass", found.seen);
  assert.equal((await look("certificates.keys", empty, flags)).state, "pass");
  chmodSync(join(files, "s.key"), 0o640);
  assert.equal((await look("4.2.9", empty, flags)).fix, `chmod 600 ${files}/s.key`);
  // What can't be read is not judged: as another user, or because it is no file.
  rmSync(join(files, "s.key"));
  mkdirSync(join(files, "s.key"));
  for (const id of ["4.2.9", "certificates.keys"]) assert.equal((await look(id, empty, flags)).state, "unknown", id);
});

function kubeconfigFor(server: string, user = "{}"): string {
  return `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "${server}"}}]
users: [{name: u, user: ${user}}]
`;
}

test("an API server that takes connections and says nothing fails one step; the later ones are no question", async () => {
  const silent = createTcpServer(() => {});
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const { port } = silent.address() as AddressInfo;
  const files = place("silent", { kubelet: kubeconfigFor(`https://127.0.0.1:${port}`) });
  const flags = [`--kubeconfig=${files}/kubelet`];
  const empty = place("empty", mounts);
  assert.equal((await look("api.tcp", empty, flags)).state, "pass");
  const tls = await look("api.tls", empty, flags);
  assert.equal(tls.state, "fail", tls.seen);
  assert.equal(tls.seen, "no answer within 0.8 s");
  silent.close();
  const gone = await look("api.tcp", empty, flags);
  assert.match(gone.seen, /ECONNREFUSED/);
  assert.equal((await look("api.rights", empty, flags)).state, "n/a");
});

test("an API server that lets us in and never answers: what was found out on the way is told", async () => {
  await using server = await serving({});
  const files = place("mute", {
    kubelet: kubeconfigFor(`https://127.0.0.1:${server.port}`).replace(
      "server:",
      "insecure-skip-tls-verify: true, server:",
    ),
  });
  const flags = [`--kubeconfig=${files}/kubelet`];
  const empty = place("empty", mounts);
  assert.equal((await look("api.tls", empty, flags)).state, "pass");
  const answer = await look("api.credentials", empty, flags);
  assert.equal(answer.state, "unknown", answer.seen);
  assert.match(answer.seen, /had not answered|ECONN|hang up/);
});

test("an API server whose name nobody knows, and credentials that the doctor does not ask for", async () => {
  const root = place("named", { ...mounts, "etc/hosts": "127.0.0.1 api.lab\n" });
  const files = place("named-config", {
    known: kubeconfigFor("https://api.lab:1"),
    plugin: kubeconfigFor(
      "https://api.lab:1",
      "{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/false, interactiveMode: Never}}",
    ),
  });
  assert.equal((await look("api.names", root, [`--kubeconfig=${files}/known`])).seen, "api.lab is 127.0.0.1");
  const plugin = await look("api.credentials", root, [`--kubeconfig=${files}/plugin`]);
  assert.equal(plugin.state, "unknown", plugin.seen);
  assert.match(plugin.seen, /the doctor does not run/);
});

async function serving(options: TlsOptions): Promise<AsyncDisposable & { readonly port: number }> {
  const authority = await CertificateAuthority.create("lab");
  const { certPem: cert, keyPem: key } = await authority.issueServer({ commonName: "n" }, ["127.0.0.1"]);
  const server = createServer({ cert, key, ...options }, (socket) => socket.end());
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

for (const [what, options, state, seen] of [
  [
    "strong suites only",
    { ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256", minVersion: "TLSv1.2" },
    "pass",
    /refused all others/,
  ],
  [
    "a suite with CBC",
    { ciphers: "ECDHE-ECDSA-AES128-SHA", minVersion: "TLSv1.2" },
    "fail",
    /agreed to ECDHE-ECDSA-AES128-SHA/,
  ],
  ["TLS 1.1", { ciphers: "ALL:@SECLEVEL=0", minVersion: "TLSv1" }, "fail", /agreed to TLSv1\.1/],
] as const) {
  test(`4.2.12: a handshake proves ${what}`, async () => {
    await using server = await serving(options);
    const flags = [
      `--port=${server.port}`,
      "--address=127.0.0.1",
      "--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    ];
    const found = await look("4.2.12", place("empty", mounts), flags);
    assert.equal(found.state, state, found.seen);
    assert.match(found.seen, seen);
  });
}

test("a configuration that somebody else than root may not read is not known, and not wrong", async () => {
  class Denied extends HostFiles {
    override text(path: string): Promise<string> {
      return Promise.reject(Object.assign(new Error(`EACCES: permission denied, open '${path}'`), { code: "EACCES" }));
    }
  }
  const files = new Denied();
  const world = {
    ...where,
    root: "/",
    machine: files,
    files,
    patience: 1,
    isChosen: false,
    flags: ["--config=/x.yaml"],
  };
  const error = await gatherConfig(world, () => assert.fail("nothing else is needed")).catch(
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof Error && !(error instanceof ConfigRefused), String(error));
  assert.equal(error.message, "/x.yaml: not for you to read; try again with sudo");
});
