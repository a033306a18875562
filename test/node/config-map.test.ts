// The configuration comes from a config map: taken over, refused, taken back, and the Node says so. The runtime is
// simulated. The Node names the config map, for which it takes an API server that keeps `spec.configSource`; with
// NODELET_CLUSTER=DIR, the real one whose admin.kubeconfig is there, a flag names it.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { startLocalApi } from "../../src/beside/localapi/index.ts";
import { KubeClients, parseKubeconfig, resources } from "../../src/connections/kube/index.ts";
import { silentLogger, systemClock, TaskScope } from "../../src/ground/base/index.ts";
import type { ConfigMap, Node } from "../../src/ground/model/index.ts";
import { eventually } from "../support/agent.ts";
import { generous, never } from "../support/client-lab.ts";
import { DaemonHome } from "../support/daemon.ts";
import { serveFakeRuntime } from "../support/served-runtime.ts";

const cluster = process.env["NODELET_CLUSTER"];
const nodeName = "config-map-node";
const ref = { namespace: "default", name: "node-config" };
const waitMs = 60_000;

interface Said {
  readonly active: { readonly source: string };
  readonly lastKnownGood?: { readonly source: string };
  readonly error?: string;
}

test("a config map is taken over, refused, taken back, and gone", async () => {
  await using scope = new TaskScope();
  const local =
    cluster === undefined
      ? await startLocalApi({ listen: { host: "127.0.0.1", port: 0 }, clock: systemClock, log: silentLogger, scope })
      : undefined;
  await using _api = { [Symbol.asyncDispose]: async () => local?.stop() };
  const kubeconfig =
    (await local?.adminKubeconfig()) ?? (await readFile(join(cluster ?? "", "admin.kubeconfig"), "utf8"));
  const access = await parseKubeconfig(kubeconfig, "kubeconfig");
  using clients = new KubeClients(access, generous, { clock: systemClock, log: silentLogger, environment: {} });
  const { main } = clients;
  await using home = await DaemonHome.create();
  await using _runtime = await serveFakeRuntime(home.runtimeSocket);
  const kubeconfigFile = join(home.directory, "kubeconfig");
  await writeFile(kubeconfigFile, kubeconfig, { mode: 0o600 });

  const base = JSON.parse(await readFile(home.configFile, "utf8"));
  const put = async (changes: object): Promise<void> => {
    const data = { kubelet: JSON.stringify({ ...base, ...changes }) };
    const metadata = { name: ref.name, namespace: ref.namespace };
    await main.delete(resources.configMaps, ref, {}, never).catch(() => undefined);
    const object: ConfigMap = { apiVersion: "v1", kind: "ConfigMap", metadata, data };
    const made = await main.create(resources.configMaps, { namespace: ref.namespace }, object, never);
    written = made.metadata?.resourceVersion;
  };
  const said = (node: Node): Said => JSON.parse(node.metadata?.annotations?.["nodelet.dev/config"] ?? "{}");
  const until = (what: string, condition: (said: Said, node: Node) => boolean): Promise<Said> =>
    eventually(
      async () => {
        const node = await main.get(resources.nodes, { name: nodeName }, {}, never);
        return condition(said(node), node) && said(node);
      },
      what,
      waitMs,
    );
  const hasPods =
    (pods: number) =>
    ({ active }: Said, { status }: Node): boolean =>
      active?.source === "/api/v1/namespaces/default/configmaps/node-config" &&
      status?.capacity?.["pods"] === `${pods}`;

  /** What the Node says in the form of older kubelets, by the resource versions of config maps. */
  const saysInStatus =
    (names: readonly ("assigned" | "active" | "lastKnownGood")[]) =>
    ({ error }: Said, { status }: Node): boolean =>
      cluster !== undefined ||
      (names.every((name) => status?.config?.[name]?.configMap?.resourceVersion === written) &&
        status?.config?.error === error);
  let written: string | undefined;

  await put({ maxPods: 42 });
  const agent = home.start({
    args: [
      `--kubeconfig=${kubeconfigFile}`,
      `--hostname-override=${nodeName}`,
      `--dynamic-config-dir=${join(home.directory, "dynamic")}`,
      ...(cluster === undefined ? [] : [`--dynamic-config-map=${ref.namespace}/${ref.name}`]),
      "--dynamic-config-trial=10s",
    ],
  });
  await agent.isUp();
  if (cluster === undefined) {
    await until("the node is there", () => true);
    const spec = { configSource: { configMap: { ...ref, kubeletConfigKey: "kubelet" } } };
    await main.patch(resources.nodes, { name: nodeName }, { type: "merge", body: { spec } }, never);
  }
  await until("it is taken over", hasPods(42));
  await until("it is good", ({ lastKnownGood, active }) => lastKnownGood?.source === active?.source);
  await until("the status of the Node says so", saysInStatus(["assigned", "active", "lastKnownGood"]));
  await put({ maxPods: 43 });
  await until("a change is taken over", hasPods(43));
  await put({ maxPods: -1 });
  const { error: invalid } = await until(
    "an invalid one is refused",
    ({ error }) => error?.includes("maxPods") === true,
  );
  assert.match(invalid ?? "", /^failed to validate config: /);
  await until("the status says why", saysInStatus(["assigned"]));
  await put({ containerRuntimeEndpoint: "unix:///run/nowhere.sock" });
  await until("a harmful one is taken back", ({ error }) => /^rolled back: runtime: .*nowhere/.test(error ?? ""));
  const assigned = await readFile(join(home.directory, "dynamic", "store", "meta", "assigned"), "utf8");
  assert.match(assigned, /^apiVersion: kubelet.config.k8s.io\/v1beta1\nkind: SerializedNodeConfigSource\n/);
  await main.delete(resources.configMaps, ref, {}, never);
  await until("one that is gone changes nothing", ({ error }) => error?.startsWith("failed to sync: ") === true);
  await put({ maxPods: 44 });
  await until("one that comes back is taken over", hasPods(44));

  agent.signal("SIGTERM");
  assert.deepEqual(await agent.exited, { code: 0, signal: null });
  await main.delete(resources.nodes, { name: nodeName }, {}, never);
});
