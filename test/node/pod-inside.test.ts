// What pods ask of the node, seen from inside their containers: names, variables, users, namespaces, limits, logs.

import assert from "node:assert/strict";
import { access, mkdir, readFile, readlink, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { readCgroupLayout } from "../../src/connections/host/index.ts";
import type { Container, Pod, PodSpec } from "../../src/ground/model/index.ts";
import { answerMs, eventually, isReady } from "../support/agent.ts";
import { freePort } from "../support/free-port.ts";
import { makeImage } from "../support/images.ts";
import { idOf, statusOf, TestNode } from "../support/test-node.ts";

describe("inside of pods", { concurrency: 6 }, () => {
  let node: TestNode;
  let seccompDir = "";
  before(async () => {
    const resolvConf = { clusterDNS: ["10.96.0.10"], clusterDomain: "cluster.test" };
    node = await TestNode.start(resolvConf, async ({ rootDir }) => {
      seccompDir = join(rootDir, "seccomp");
      await mkdir(seccompDir, { recursive: true });
      const noMkdir = {
        defaultAction: "SCMP_ACT_ALLOW",
        syscalls: [{ names: ["mkdir", "mkdirat"], action: "SCMP_ACT_ERRNO" }],
      };
      await writeFile(join(seccompDir, "no-mkdir.json"), JSON.stringify(noMkdir));
    });
    await node.containerd.importImage(await makeImage({ name: "localhost/nodelet/as-user:1", user: "1000" }));
    await node.containerd.importImage(await makeImage({ name: "localhost/nodelet/as-name:1", user: "user" }));
  });
  after(() => node?.[Symbol.asyncDispose]());

  const up = async (name: string, spec: Partial<PodSpec>, metadata: object = {}): Promise<Pod> => {
    await node.agent.apply(name, spec, metadata);
    return node.agent.until(name, "ready", isReady);
  };

  test("variables: values, expansion, facts about the pod, its node and its limits", async () => {
    const field = (fieldPath: string) => ({ valueFrom: { fieldRef: { fieldPath } } });
    const resource = (name: string, divisor: string) => ({
      valueFrom: { resourceFieldRef: { resource: name, divisor } },
    });
    const main = node.shell("main", 'echo "$0" "$1" > /tmp/args; exec sleep 1d', {
      args: ["$(GREETING)", "$$(GREETING) $(UNKNOWN)"],
      workingDir: "/tmp",
      resources: { requests: { cpu: "100m", memory: "32Mi" }, limits: { cpu: "1500m", memory: "64Mi" } },
      env: [
        { name: "WHO", value: "world" },
        { name: "GREETING", value: "hello $(WHO)" },
        { name: "LATER", value: "$(UNSET) $$(WHO)" },
        { name: "NAME", ...field("metadata.name") },
        { name: "NAMESPACE", ...field("metadata.namespace") },
        { name: "UID", ...field("metadata.uid") },
        { name: "LABEL", ...field("metadata.labels['tier']") },
        { name: "NODE", ...field("spec.nodeName") },
        { name: "IP", ...field("status.podIP") },
        { name: "HOST", ...field("status.hostIP") },
        { name: "CPU", ...resource("limits.cpu", "1m") },
        { name: "CORES", ...resource("limits.cpu", "1") },
        { name: "MEMORY", ...resource("requests.memory", "1Mi") },
      ],
    });
    const pod = await up("variables", { containers: [main] }, { namespace: "shop", labels: { tier: "front" } });
    assert.equal(await node.sh(pod, "main", "cat /tmp/args"), "hello world $(GREETING) $(UNKNOWN)");
    const { uid } = pod.metadata ?? {};
    const { podIP, hostIP } = pod.status ?? {};
    const script = 'echo "$GREETING|$LATER|$NAME|$NAMESPACE|$UID|$LABEL|$NODE|$IP|$HOST|$CPU|$CORES|$MEMORY|$PWD"';
    const wanted = `hello world|$(UNSET) $(WHO)|variables-test-node|shop|${uid}|front|test-node|${podIP}|${hostIP}|1500|2|32|/tmp`;
    assert.equal(await node.sh(pod, "main", script), wanted);
  });

  test("name, hosts file and resolver of a pod", async () => {
    const spec = {
      hostname: "web",
      subdomain: "db",
      hostAliases: [{ ip: "192.0.2.9", hostnames: ["one", "two"] }],
      containers: [node.server("main")],
    };
    const pod = await up("named", spec);
    assert.equal(await node.sh(pod, "main", "hostname"), "web");
    const hosts = await node.sh(pod, "main", "cat /etc/hosts");
    assert.match(hosts, /^# Kubernetes-managed hosts file\.\n127\.0\.0\.1\tlocalhost\n/);
    assert.ok(hosts.includes(`\n${pod.status?.podIP}\tweb.db.default.svc.cluster.test\tweb\n`), hosts);
    assert.ok(hosts.endsWith("\n# Entries added by HostAliases.\n192.0.2.9\tone\ttwo"), hosts);
    const resolver = await node.sh(pod, "main", "cat /etc/resolv.conf");
    assert.match(resolver, /^search default\.svc\.cluster\.test svc\.cluster\.test cluster\.test/);
    assert.match(resolver, /\nnameserver 10\.96\.0\.10\n/);
    assert.match(resolver, /\noptions ndots:5/);
  });

  test("resolvers by policy: the node's, the cluster's from the host network, the pod's own", async () => {
    const containers = [node.server("main")];
    const own = {
      nameservers: ["192.0.2.53"],
      searches: ["example.test"],
      options: [{ name: "ndots", value: "2" }, { name: "edns0" }],
    };
    const [ofNode, onHost, ofPod] = await Promise.all([
      up("dns-default", { dnsPolicy: "Default", containers }),
      up("dns-host", { hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet", containers }),
      up("dns-none", { dnsPolicy: "None", dnsConfig: own, containers }),
    ]);
    const resolver = (pod: Pod): Promise<string> => node.sh(pod, "main", "grep -v '^#' /etc/resolv.conf");
    const nameservers = (text: string): readonly string[] =>
      text.split("\n").filter((line) => line.startsWith("nameserver"));
    assert.deepEqual(nameservers(await resolver(ofNode)), nameservers(await readFile("/etc/resolv.conf", "utf8")));
    assert.deepEqual(nameservers(await resolver(onHost)), ["nameserver 10.96.0.10"]);
    assert.deepEqual((await resolver(ofPod)).split("\n"), [
      "search example.test",
      "nameserver 192.0.2.53",
      "options ndots:2 edns0",
    ]);
  });

  test("users, groups, privileges, capabilities, read-only root, masked and unmasked files", async () => {
    const pod = await up("secured", {
      securityContext: { runAsUser: 1234, runAsGroup: 2345, fsGroup: 3456, supplementalGroups: [4567] },
      volumes: [{ name: "data", emptyDir: {} }],
      containers: [
        node.server("tight", {
          volumeMounts: [{ name: "data", mountPath: "/data" }],
          securityContext: {
            runAsNonRoot: true,
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          },
        }),
        node.server("root", {
          securityContext: { runAsUser: 0, runAsGroup: 0, capabilities: { add: ["NET_ADMIN"], drop: ["MKNOD"] } },
        }),
        node.server("mighty", { securityContext: { runAsUser: 0, privileged: true } }),
      ],
    });
    const groups = "id -u; id -g; id -G | tr ' ' '\\n' | sort -n | tr '\\n' ' '";
    assert.equal((await node.sh(pod, "tight", groups)).trim(), "1234\n2345\n2345 3456 4567");
    const facts = "grep -E '^(CapEff|NoNewPrivs)' /proc/self/status | tr '\\t' ' '";
    assert.equal(await node.sh(pod, "tight", facts), "CapEff: 0000000000000000\nNoNewPrivs: 1");
    assert.equal(await node.sh(pod, "tight", "touch /x 2>/dev/null && echo written || echo refused"), "refused");
    assert.equal(await node.sh(pod, "tight", "touch /data/x && stat -c %g /data/x /data"), "3456\n3456");
    const capabilities = Number.parseInt(await node.sh(pod, "root", "grep CapEff /proc/self/status | cut -f2"), 16);
    assert.deepEqual([(capabilities >> 12) & 1, (capabilities >> 27) & 1], [1, 0], "NET_ADMIN and no MKNOD");
    assert.equal(await node.sh(pod, "root", "head -c1 /proc/kcore 2>/dev/null | wc -c"), "0");
    const write = "echo 0 2>/dev/null > /proc/sys/kernel/shm_rmid_forced && echo written || echo refused";
    assert.equal(await node.sh(pod, "root", write), "refused");
    assert.equal(await node.sh(pod, "mighty", write), "written");
  });

  test("seccomp: none unless asked for, the runtime's, a profile of the node", async () => {
    const asked = (seccompProfile: object): Partial<Container> => ({ securityContext: { seccompProfile } as never });
    const pod = await up("seccomp", {
      containers: [
        node.server("free"),
        node.server("usual", asked({ type: "RuntimeDefault" })),
        node.server("local", asked({ type: "Localhost", localhostProfile: "no-mkdir.json" })),
      ],
    });
    const mode = "grep ^Seccomp: /proc/self/status | cut -f2";
    assert.deepEqual(
      [await node.sh(pod, "free", mode), await node.sh(pod, "usual", mode), await node.sh(pod, "local", mode)],
      ["0", "2", "2"],
    );
    const make = "mkdir /tmp/d 2>/dev/null && echo made || echo refused";
    assert.deepEqual([await node.sh(pod, "free", make), await node.sh(pod, "local", make)], ["made", "refused"]);
  });

  test("runAsNonRoot: refused in words where a container would be root, or nobody can tell", async () => {
    const securityContext = { runAsNonRoot: true };
    const image = (name: string): Container => ({ ...node.server("main"), image: `localhost/nodelet/${name}:1` });
    const user = await up("nonroot-user", { securityContext, containers: [image("as-user")] });
    assert.equal(await node.sh(user, "main", "id -u"), "1000");
    for (const [name, main, complaint] of [
      ["nonroot-image", node.server("main"), /^container has runAsNonRoot and image will run as root \(pod: "/],
      [
        "nonroot-asked",
        node.server("main", { securityContext: { runAsUser: 0 } }),
        /^container's runAsUser breaks non-root policy \(pod: "/,
      ],
      [
        "nonroot-name",
        image("as-name"),
        /^container has runAsNonRoot and image has non-numeric user \(user\), cannot verify user is non-root \(pod: "/,
      ],
    ] as const) {
      await node.agent.apply(name, { securityContext, containers: [main] });
      const pod = await node.agent.until(
        name,
        "refused",
        (seen) => statusOf(seen, "main").state?.waiting?.reason === "CreateContainerConfigError",
      );
      assert.match(statusOf(pod, "main").state?.waiting?.message ?? "", complaint);
    }
  });

  test("namespaces: the pod's own, the host's, processes shared in the pod", async () => {
    const [apart, host, shared] = await Promise.all([
      up("apart", { containers: [node.server("main"), node.server("other")] }),
      up("host", { hostNetwork: true, hostPID: true, hostIPC: true, containers: [node.server("main")] }),
      up("shared", { shareProcessNamespace: true, containers: [node.server("main"), node.server("other")] }),
    ]);
    const namespaces = async (pod: Pod, container = "main"): Promise<Record<string, string>> => {
      const [net = "", pid = "", ipc = ""] = (
        await node.sh(pod, container, "for n in net pid ipc; do readlink /proc/self/ns/$n; done")
      ).split("\n");
      return { net, pid, ipc };
    };
    const ours = {
      net: await readlink("/proc/self/ns/net"),
      pid: await readlink("/proc/self/ns/pid"),
      ipc: await readlink("/proc/self/ns/ipc"),
    };
    assert.deepEqual(await namespaces(host), ours);
    assert.equal(await node.sh(host, "main", "hostname"), hostname());
    assert.match(await node.sh(host, "main", "head -1 /etc/hosts"), /\(host network\)/);
    assert.equal(host.status?.podIP, host.status?.hostIP);
    const [main, other] = [await namespaces(apart), await namespaces(apart, "other")];
    assert.deepEqual([main["net"], main["ipc"]], [other["net"], other["ipc"]]);
    assert.notEqual(main["pid"], other["pid"]);
    for (const kind of ["net", "pid", "ipc"] as const) assert.notEqual(main[kind], ours[kind]);
    assert.equal((await namespaces(shared))["pid"], (await namespaces(shared, "other"))["pid"]);
    assert.notEqual((await namespaces(shared))["pid"], ours.pid);
  });

  test("sysctls that are safe are set; others are refused before anything starts", async () => {
    const sysctls = [
      { name: "net.ipv4.ip_unprivileged_port_start", value: "80" },
      { name: "kernel/shm_rmid_forced", value: "1" },
    ];
    const pod = await up("sysctls", { securityContext: { sysctls }, containers: [node.server("main")] });
    const read = "cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/shm_rmid_forced";
    assert.equal(await node.sh(pod, "main", read), "80\n1");
    const unsafe = { securityContext: { sysctls: [{ name: "kernel.msgmax", value: "1" }] } };
    await node.agent.apply("unsafe", { ...unsafe, containers: [node.server("main")] });
    const { status } = await node.agent.until("unsafe", "refused", (seen) => seen.status?.phase === "Failed");
    assert.deepEqual(
      [status?.reason, status?.message],
      ["SysctlForbidden", 'Pod was rejected: forbidden sysctl: "kernel.msgmax" not allowlisted'],
    );
    await node.agent.remove("unsafe");
    await node.agent.untilGone("unsafe");
  });

  test("limits arrive in the cgroups of the container and its pod, and go with them", async () => {
    const limited = node.server("main", {
      resources: { requests: { cpu: "100m", memory: "32Mi" }, limits: { cpu: "500m", memory: "64Mi" } },
    });
    const pod = await up("limited", { containers: [limited] });
    const free = await up("free", { containers: [node.server("main")] });
    assert.deepEqual([pod.status?.qosClass, free.status?.qosClass], ["Burstable", "BestEffort"]);
    const id = idOf(statusOf(pod, "main"));
    const cgroup = `${node.containerd.cgroupRoot}/kubepods/burstable/pod${pod.metadata?.uid}`;
    const layout = await readCgroupLayout();
    const directory = (controller: string): string =>
      join(layout.version === 1 ? (layout.mountPoints.get(controller) ?? "") : layout.mountPoint, cgroup);
    const read = async (controller: string, path: string): Promise<string> =>
      (await readFile(join(directory(controller), path), "utf8")).trim();
    const memory = String(64 * 2 ** 20);
    if (layout.version === 1) {
      assert.equal(await read("cpu", `${id}/cpu.shares`), "102");
      assert.equal(await read("cpu", `${id}/cpu.cfs_quota_us`), "50000");
      assert.equal(await read("memory", `${id}/memory.limit_in_bytes`), memory);
      assert.equal(await read("cpu", "cpu.shares"), "102");
      assert.equal(await read("memory", "memory.limit_in_bytes"), memory);
    } else {
      assert.equal(await read("", `${id}/cpu.max`), "50000 100000");
      assert.equal(await read("", `${id}/memory.max`), memory);
      assert.equal(await read("", "memory.max"), memory);
    }
    assert.match(await node.sh(free, "main", "cat /proc/self/cgroup"), /kubepods\/besteffort\/pod/);
    await node.agent.remove("limited");
    await node.agent.untilGone("limited");
    await assert.rejects(access(directory("memory")), /ENOENT/);
  });

  test("a host port leads into the pod, and a second pod that wants it is refused", async () => {
    const port = await freePort();
    const web = node.shell("main", "mkdir /www; echo it works > /www/index.html; exec httpd -f -p 8080 -h /www", {
      ports: [{ containerPort: 8080, hostPort: port }],
      readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
    });
    const pod = await up("ported", { containers: [web] });
    const address = pod.status?.hostIP ?? "";
    assert.match(await fetched(address, port), /it works/);
    await node.agent.apply("ported-too", {
      containers: [node.server("main", { ports: [{ containerPort: 1, hostPort: port }] })],
    });
    const { status } = await node.agent.until("ported-too", "refused", (seen) => seen.status?.phase === "Failed");
    assert.equal(status?.reason, "NodePorts");
  });

  test("logs lie where collectors look for them", async () => {
    const main = node.shell("main", "echo to out; echo to err >&2; sleep 1d");
    const pod = await up("logging", { containers: [main] });
    const { name, namespace, uid } = pod.metadata ?? {};
    const path = join(node.containerd.layout.podLogsDir, `${namespace}_${name}_${uid}`, "main", "0.log");
    const linesOf = async (): Promise<readonly string[]> => (await readFile(path, "utf8")).trimEnd().split("\n");
    await eventually(async () => (await linesOf()).length === 2, "both lines are written", answerMs);
    // Which stream is read first is not said, and times end in no zeros.
    const words = (line: string): string => line.slice(line.indexOf(" "));
    const lines = (await linesOf()).toSorted((one, other) => words(other).localeCompare(words(one)));
    assert.match(lines[0] ?? "", /^\d{4}-\d\d-\d\dT\S+ stdout F to out$/);
    assert.match(lines[1] ?? "", /^\d{4}-\d\d-\d\dT\S+ stderr F to err$/);
    const link = `/var/log/containers/${name}_${namespace}_main-${idOf(statusOf(pod, "main"))}.log`;
    assert.equal(await readlink(link), path);
    await node.agent.remove("logging");
    await node.agent.untilGone("logging");
    await assert.rejects(readlink(link), /ENOENT/);
    await assert.rejects(readFile(path), /ENOENT/);
  });
});

/** As a browser would ask, but without following anything. */
async function fetched(host: string, port: number): Promise<string> {
  const socket = connect(port, host);
  socket.write("GET / HTTP/1.0\r\n\r\n");
  let text = "";
  for await (const chunk of socket.setEncoding("utf8")) text += chunk;
  return text;
}
