import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { FakeKubelet } from "../../../test/support/fake-kubelet.ts";
import { Kubectl, withoutKubectl } from "../../../test/support/kubectl.ts";
import { silentLogger, systemClock, TaskScope } from "../../ground/base/index.ts";
import { type LocalApi, startLocalApi } from "./start.ts";

const manifest = (labels: string): string => `
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {${labels}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: registry.invalid/web:1
    ports: [{containerPort: 80}]
`;

describe("kubectl", { skip: withoutKubectl }, () => {
  const scope = new TaskScope();
  let api: LocalApi;
  let kubelet: FakeKubelet;
  let directory: string;
  let user: Kubectl;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), "kubectl-test-"));
    const listen = { host: "127.0.0.1", port: 0 };
    api = await startLocalApi({ listen, clock: systemClock, log: silentLogger, scope });
    kubelet = await FakeKubelet.start(api.caPem);
    await writeFile(join(directory, "kubeconfig"), await api.adminKubeconfig());
    user = new Kubectl(join(directory, "kubeconfig"), directory);
    await writeFile(join(directory, "node.json"), JSON.stringify(readyNode(kubelet.port)));
  });
  after(async () => {
    await api.stop();
    await kubelet[Symbol.asyncDispose]();
    await scope.stop();
    await rm(directory, { recursive: true });
  });

  const kubectl = (...args: readonly string[]) => user.run(...args);
  const succeed = (...args: readonly string[]) => user.succeed(...args);

  const file = async (name: string, content: string): Promise<string> => {
    await writeFile(join(directory, name), content);
    return join(directory, name);
  };

  test("who stores what nothing comes of is warned", async () => {
    for (const { args, says } of [
      { args: ["create", "deployment", "d", "--image=x"], says: /^Warning: this Deployment is stored, but nothing/m },
      { args: ["scale", "deployment", "d", "--replicas=3"], says: /^Warning: this Deployment is stored, but nothing/m },
      { args: ["create", "service", "clusterip", "s", "--tcp=80"], says: /^Warning: this Service is stored, but no/m },
      { args: ["delete", "deployment/d", "service/s"], says: /^$/ },
    ]) {
      const { code, stderr } = await kubectl(...args);
      assert.equal(code, 0, stderr);
      assert.match(stderr, says);
    }
  });

  test("get shows namespaces with their usual columns", async () => {
    const [head = "", ...rows] = (await succeed("get", "namespaces")).trim().split("\n");
    assert.match(head, /^NAME +STATUS +AGE$/);
    assert.deepEqual(
      rows.map((row) => row.split(/ +/).slice(0, 2)),
      ["default", "kube-node-lease", "kube-public", "kube-system"].map((name) => [name, "Active"]),
    );
  });

  test("apply creates, leaves alone, changes; strict about fields", async () => {
    await succeed("create", "-f", join(directory, "node.json"));
    assert.equal(await succeed("apply", "-f", await file("pod.yaml", manifest("app: web"))), "pod/web created\n");
    assert.equal(await succeed("apply", "-f", await file("pod.yaml", manifest("app: web"))), "pod/web unchanged\n");
    assert.equal(await succeed("apply", "-f", await file("pod.yaml", manifest("tier: a"))), "pod/web configured\n");
    const labels = await succeed("get", "pod", "web", "-o", "jsonpath={.metadata.labels}");
    assert.deepEqual(JSON.parse(labels), { tier: "a" });
    const { stderr, code } = await kubectl(
      "apply",
      "-f",
      await file("bad.yaml", manifest("a: b").replace("image:", "imagee:")),
    );
    assert.notEqual(code, 0);
    assert.match(stderr, /unknown field "spec\.containers\[0\]\.imagee"/);
  });

  test("apply takes a list, and checks what is in it as strictly", async () => {
    const map = (name: string) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } });
    assert.equal(await user.apply(map("one"), map("two")), "configmap/one created\nconfigmap/two created\n");
    await assert.rejects(user.apply({ ...map("three"), dada: {} }), /unknown field "dada"/);
    await succeed("delete", "configmap", "one", "two");
  });

  test("get and describe show the pod and the node as they are", async () => {
    const wide = await succeed("get", "pods", "-o", "wide");
    assert.match(
      wide,
      /^NAME +READY +STATUS +RESTARTS +AGE +IP +NODE +NOMINATED NODE +READINESS GATES\nweb +0\/1 +Pending +0 +\S+ +<none> +n1 /,
    );
    assert.match(
      await succeed("get", "nodes"),
      /^NAME +STATUS +ROLES +AGE +VERSION\nn1 +Ready +<none> +\S+ +v1\.34\.0\n$/,
    );
    const described = await succeed("describe", "pod", "web");
    assert.match(described, /Node: +n1/);
    assert.match(described, /kube-api-access-\w{5}/);
    assert.match(described, /Normal +Scheduled .* Successfully assigned default\/web to n1/);
    assert.match(await succeed("describe", "node", "n1"), /Non-terminated Pods: +\(1 in total\)[\s\S]*default +web /);
    assert.match(await succeed("get", "events"), /Scheduled +pod\/web +Successfully assigned/);
  });

  test("edit writes what the editor leaves", async () => {
    const editor = await file("editor", '#!/bin/sh\nsed -i "s/tier: a/tier: edited/" "$1"\n');
    await chmod(editor, 0o755);
    assert.equal(await succeed("edit", "pod", "web"), "pod/web edited\n");
    assert.equal(
      await succeed("get", "pod", "web", "-L", "tier", "--no-headers").then((row) => row.trim().split(/ +/).at(-1)),
      "edited",
    );
  });

  test("label, annotate, patch, cordon and taint", async () => {
    await succeed("label", "pod", "web", "x=1");
    await succeed("annotate", "pod", "web", "y=2");
    await succeed("patch", "pod", "web", "-p", '{"metadata":{"labels":{"z":"3"}}}');
    await succeed("patch", "pod", "web", "--type=json", "-p", '[{"op":"remove","path":"/metadata/labels/x"}]');
    const labels = await succeed("get", "pod", "web", "-o", "jsonpath={.metadata.labels}");
    assert.deepEqual(JSON.parse(labels), { tier: "edited", z: "3" });
    await succeed("cordon", "n1");
    assert.match(await succeed("get", "node", "n1"), /Ready,SchedulingDisabled/);
    await succeed("uncordon", "n1");
    await succeed("taint", "node", "n1", "a=b:NoSchedule");
    await succeed("taint", "node", "n1", "a-");
  });

  test("logs come from the node's kubelet, asked with the server's certificate", async () => {
    assert.equal(await succeed("logs", "web", "--tail=2"), "line 1\nline 2\n");
    const request = kubelet.requests.at(-1);
    assert.match(request?.url ?? "", /^\/containerLogs\/default\/web\/main\?tailLines=2$/);
    assert.equal(request?.user, "system:masters/kube-apiserver-kubelet-client");
  });

  test("a path of the kubelet can be read through the API", async () => {
    await succeed("get", "--raw", "/api/v1/nodes/n1/proxy/pods?x=1");
    assert.equal(kubelet.requests.at(-1)?.url, "/pods?x=1");
  });

  test("top shows what the kubelet measures", async () => {
    assert.match(await succeed("top", "pods"), /^NAME +CPU\(cores\) +MEMORY\(bytes\) *\nweb +5m +3Mi *\n$/);
    assert.match(await succeed("top", "pods", "--containers", "--no-headers"), /^web +main +5m +3Mi *\n$/);
    assert.match(await succeed("top", "nodes", "--no-headers"), /^n1 +250m +(?:\S+ +)?512Mi /);
    assert.equal((await kubectl("top", "pod", "absent")).code, 1);
  });

  test("exec and port-forward reach the kubelet by a protocol it speaks", async () => {
    // The fake kubelet echoes bytes, so what follows the handshake is no conversation; what counts is what arrives.
    await using exec = user.start("exec", "web", "--", "ls", "-l");
    await kubelet.arrival("POST /exec/default/web/main?output=1&error=1&command=ls&command=-l");
    await succeed("patch", "pod", "web", "--subresource=status", "-p", '{"status":{"phase":"Running"}}');
    await using forward = user.start("port-forward", "pod/web", ":80");
    const line = await forward.says(/^Forwarding from 127\.0\.0\.1:(\d+) -> 80/);
    assert.ok(line);
    await kubelet.arrival("POST /portForward/default/web");
    assert.ok(exec);
  });

  for (const { words, shown } of [
    { words: ["namespace", "made"], shown: "namespace/made" },
    { words: ["configmap", "made", "--from-literal=a=1"], shown: "configmap/made" },
    { words: ["secret", "generic", "made", "--from-literal=a=1"], shown: "secret/made" },
    { words: ["serviceaccount", "made"], shown: "serviceaccount/made" },
    { words: ["service", "clusterip", "made", "--tcp=80:8080"], shown: "service/made" },
    { words: ["deployment", "made", "--image=web", "--replicas=0"], shown: "deployment.apps/made" },
    { words: ["job", "made", "--image=web"], shown: "job.batch/made" },
    { words: ["cronjob", "made", "--image=web", "--schedule=0 0 * * *"], shown: "cronjob.batch/made" },
    { words: ["quota", "made", "--hard=pods=3"], shown: "resourcequota/made" },
    { words: ["pdb", "made", "--selector=a=b", "--min-available=1"], shown: "poddisruptionbudget.policy/made" },
    { words: ["priorityclass", "made", "--value=5"], shown: "priorityclass.scheduling.k8s.io/made" },
  ]) {
    test(`create ${words.join(" ")}`, async () => {
      assert.equal(await succeed("create", ...words), `${shown} created\n`);
      await succeed("delete", shown, "--wait=false");
    });
  }

  test("what create sends in protobuf is stored as if it came in JSON", async () => {
    await succeed("create", "secret", "generic", "binary", "--from-literal=a=1", "--from-literal=b=");
    assert.equal(
      await succeed("get", "secret", "binary", "-o", "jsonpath={.data} {.type}"),
      '{"a":"MQ==","b":""} Opaque',
    );
    await succeed("create", "service", "nodeport", "ports", "--tcp=80:8080");
    const ports = await succeed("get", "service", "ports", "-o", "jsonpath={.spec.ports[0].targetPort} {.spec.type}");
    assert.equal(ports, "8080 NodePort");
    assert.equal(await succeed("auth", "can-i", "get", "pods"), "yes\n");
    assert.match(await succeed("auth", "whoami"), /kubernetes-admin/);
    assert.match(await succeed("create", "token", "default"), /^ey[\w-]+\.[\w-]+\.[\w-]+\s*$/);
  });

  test("explain knows the types", async () => {
    assert.match(await succeed("explain", "pod.spec.containers.image"), /FIELD: image <string>/);
  });

  test("scale changes the wanted replicas and nothing else", async () => {
    await succeed("create", "deployment", "scaled", "--image=web", "--replicas=1");
    assert.equal(await succeed("scale", "deployment", "scaled", "--replicas=3"), "deployment.apps/scaled scaled\n");
    assert.equal(await succeed("scale", "deployment", "scaled", "--replicas=0"), "deployment.apps/scaled scaled\n");
    const fields = "jsonpath={.spec.replicas} {.metadata.generation} {.spec.template.spec.containers[0].image}";
    assert.equal(await succeed("get", "deployment", "scaled", "-o", fields), "0 3 web");
    await succeed("delete", "deployment", "scaled");
  });

  test("server-side apply creates, merges and removes", async () => {
    const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ssa}\ndata: {a: '1'}\n";
    assert.equal(
      await succeed("apply", "--server-side", "-f", await file("cm.yaml", text)),
      "configmap/ssa serverside-applied\n",
    );
    await succeed("apply", "--server-side", "-f", await file("cm.yaml", text.replace("'1'", "'2'")));
    assert.equal(await succeed("get", "cm", "ssa", "-o", "jsonpath={.data.a}"), "2");
    await succeed("apply", "--server-side", "-f", await file("cm.yaml", text.replace("{a: '1'}", "{b: '3'}")));
    assert.equal(await succeed("get", "cm", "ssa", "-o", "jsonpath={.data}"), '{"b":"3"}');
    const other = [
      "apply",
      "--server-side",
      "--field-manager=other",
      "-f",
      await file("cm.yaml", text.replace("a: '1'", "b: '4'")),
    ];
    assert.match((await kubectl(...other)).stderr, /Apply failed with 1 conflict: conflict with "kubectl": \.data\.b/);
    await succeed(...other, "--force-conflicts");
    assert.equal(await succeed("get", "cm", "ssa", "-o", "jsonpath={.data}"), '{"b":"4"}');
  });

  test("get --watch follows", async () => {
    await using watch = user.start("get", "configmaps", "--watch", "--no-headers");
    await watch.says(/^ssa +1/m);
    await succeed(
      "apply",
      "-f",
      await file("new.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: followed}\n"),
    );
    await watch.says(/^followed +0/m);
    await succeed("patch", "configmap", "followed", "-p", '{"data":{"a":"1"}}');
    await watch.says(/^followed +1/m);
  });

  test("delete waits until the pod is gone", async () => {
    assert.match(await succeed("delete", "pod", "web"), /pod "web" deleted/);
    const { code, stderr } = await kubectl("get", "pod", "web");
    assert.equal(code, 1);
    assert.match(stderr, /Error from server \(NotFound\): pods "web" not found/);
  });

  test("a namespace goes with all that is in it", async () => {
    await succeed("apply", "-f", await file("ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: short}\n"));
    await succeed(
      "apply",
      "-n",
      "short",
      "-f",
      await file("cm2.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"),
    );
    await succeed("delete", "namespace", "short");
    assert.equal((await kubectl("get", "namespace", "short")).code, 1);
  });
});

function readyNode(kubeletPort: number): object {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "n1" },
    status: {
      conditions: [{ type: "Ready", status: "True", reason: "KubeletReady" }],
      addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
      daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
      nodeInfo: {
        kubeletVersion: "v1.34.0",
        architecture: "amd64",
        bootID: "",
        containerRuntimeVersion: "",
        kernelVersion: "",
        kubeProxyVersion: "",
        machineID: "",
        operatingSystem: "linux",
        osImage: "",
        systemUUID: "",
      },
    },
  };
}
