import assert from "node:assert/strict";
import { test } from "node:test";
import { generous, never } from "../../../test/support/client-lab.ts";
import { startLocalApi } from "../../beside/localapi/index.ts";
import { KubeClients, parseKubeconfig, requestToken, resources } from "../../connections/kube/index.ts";
import { silentLogger, systemClock, TaskScope } from "../../ground/base/index.ts";
import type { Pod, ServiceAccount } from "../../ground/model/index.ts";
import { TokenManager } from "../volumes/index.ts";
import { pullAccounts } from "./pull-accounts.ts";

test("a credential provider learns of the pod's account what a node may know, and gets a token bound to the pod", async () => {
  const [clock, log] = [systemClock, silentLogger];
  await using scope = new TaskScope();
  const api = await startLocalApi({ listen: { host: "127.0.0.1", port: 0 }, clock, log, scope });
  const open = async (kubeconfig: string): Promise<KubeClients> =>
    new KubeClients(await parseKubeconfig(kubeconfig, "kubeconfig"), generous, { clock, log, environment: {} });
  using admin = await open(await api.adminKubeconfig());
  using node = await open(await api.nodeKubeconfig("n"));
  const metadata = { name: "builder", namespace: "default", annotations: { "example.com/role": "puller" } };
  const account: ServiceAccount = { apiVersion: "v1", kind: "ServiceAccount", metadata };
  const stored = await admin.main.create(resources.serviceAccounts, { namespace: "default" }, account, never);
  const web: Pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", namespace: "default" },
    spec: { nodeName: "n", serviceAccountName: "builder", containers: [{ name: "main", image: "i" }] },
  };
  const pod = await admin.main.create(resources.pods, { namespace: "default" }, web, never);
  let asked = 0;
  const accounts = pullAccounts({
    client: node.main,
    tokens: new TokenManager({
      request: (...args) => {
        asked++;
        return requestToken(node.main, ...args);
      },
      clock,
      log,
      random: Math.random,
    }),
  });
  assert.deepEqual(await accounts.get("default", "builder", never), {
    uid: stored.metadata?.uid,
    annotations: { "example.com/role": "puller" },
  });
  await assert.rejects(accounts.get("default", "nobody", never));

  const uid = pod.metadata?.uid ?? "";
  const pulling = { namespace: "default", name: "web", uid, serviceAccountName: "builder" };
  const token = await accounts.requestToken(pulling, "registry.example", never);
  assert.equal(await accounts.requestToken(pulling, "registry.example", never), token, "it is good for a while");
  assert.equal(asked, 1);
  const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
  assert.deepEqual(claims.aud, ["registry.example"]);
  assert.equal(claims.sub, "system:serviceaccount:default:builder");
  assert.deepEqual(claims["kubernetes.io"].pod, { name: "web", uid });
  await api.stop();
});
