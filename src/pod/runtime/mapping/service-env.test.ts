import assert from "node:assert/strict";
import { test } from "node:test";
import { examplePod } from "../../../../test/support/example-context.ts";
import type { IdentifiedPod, Service } from "../../../ground/model/index.ts";
import type { KnownServices } from "./context.ts";
import { serviceEnv } from "./service-env.ts";

function service(
  namespace: string,
  name: string,
  clusterIP: string,
  ports: NonNullable<Service["spec"]>["ports"],
): Service {
  return { metadata: { name, namespace }, spec: { clusterIP, ports } };
}

const api = service("default", "kubernetes", "10.96.0.1", [{ name: "https", port: 443, protocol: "TCP" }]);
const db = service("shop", "my-db", "10.96.0.5", [
  { name: "sql-main", port: 5432, protocol: "TCP" },
  { name: "stats", port: 9000, protocol: "UDP" },
]);

function envFor(
  services: readonly Service[],
  spec: Partial<IdentifiedPod["spec"]> = {},
  namespace = "shop",
): Record<string, string> {
  const pod = examplePod(spec);
  const placed = { ...pod, metadata: { ...pod.metadata, namespace } };
  return Object.fromEntries(serviceEnv(placed, { state: "read", services }));
}

test("the API server's variables", () => {
  assert.deepEqual(envFor([api]), {
    KUBERNETES_SERVICE_HOST: "10.96.0.1",
    KUBERNETES_SERVICE_PORT: "443",
    KUBERNETES_SERVICE_PORT_HTTPS: "443",
    KUBERNETES_PORT: "tcp://10.96.0.1:443",
    KUBERNETES_PORT_443_TCP: "tcp://10.96.0.1:443",
    KUBERNETES_PORT_443_TCP_PROTO: "tcp",
    KUBERNETES_PORT_443_TCP_PORT: "443",
    KUBERNETES_PORT_443_TCP_ADDR: "10.96.0.1",
  });
});

test("a service with two named ports", () => {
  assert.deepEqual(envFor([db]), {
    MY_DB_SERVICE_HOST: "10.96.0.5",
    MY_DB_SERVICE_PORT: "5432",
    MY_DB_SERVICE_PORT_SQL_MAIN: "5432",
    MY_DB_SERVICE_PORT_STATS: "9000",
    MY_DB_PORT: "tcp://10.96.0.5:5432",
    MY_DB_PORT_5432_TCP: "tcp://10.96.0.5:5432",
    MY_DB_PORT_5432_TCP_PROTO: "tcp",
    MY_DB_PORT_5432_TCP_PORT: "5432",
    MY_DB_PORT_5432_TCP_ADDR: "10.96.0.5",
    MY_DB_PORT_9000_UDP: "udp://10.96.0.5:9000",
    MY_DB_PORT_9000_UDP_PROTO: "udp",
    MY_DB_PORT_9000_UDP_PORT: "9000",
    MY_DB_PORT_9000_UDP_ADDR: "10.96.0.5",
  });
});

test("IPv6 addresses are bracketed in URLs only; a missing protocol is TCP", () => {
  const env = envFor([service("shop", "six", "fd00::5", [{ port: 80 }])]);
  assert.equal(env["SIX_SERVICE_HOST"], "fd00::5");
  assert.equal(env["SIX_PORT"], "tcp://[fd00::5]:80");
  assert.equal(env["SIX_PORT_80_TCP_ADDR"], "fd00::5");
  assert.equal(env["SIX_SERVICE_PORT_"], undefined);
});

const names = (env: Record<string, string>): string[] =>
  Object.keys(env)
    .filter((name) => name.endsWith("_SERVICE_HOST"))
    .sort();

test("services of the pod's namespace, and the API server's from anywhere", () => {
  const foreign = service("other", "foreign", "10.96.0.9", [{ port: 1 }]);
  assert.deepEqual(names(envFor([foreign, api, db])), ["KUBERNETES_SERVICE_HOST", "MY_DB_SERVICE_HOST"]);
});

test("without service links only the API server's", () => {
  assert.deepEqual(names(envFor([api, db], { enableServiceLinks: false })), ["KUBERNETES_SERVICE_HOST"]);
});

test("services without a cluster IP are left out", () => {
  const headless = service("shop", "headless", "None", []);
  const pending = service("shop", "pending", "", [{ port: 1 }]);
  assert.deepEqual(envFor([headless, pending]), {});
});

test("a service called kubernetes in the pod's own namespace wins, in either order", () => {
  const own = service("shop", "kubernetes", "10.96.0.7", [{ port: 1 }]);
  for (const services of [
    [api, own],
    [own, api],
  ]) {
    assert.equal(envFor(services)["KUBERNETES_SERVICE_HOST"], "10.96.0.7");
    assert.equal(envFor(services, { enableServiceLinks: false })["KUBERNETES_SERVICE_HOST"], "10.96.0.1");
  }
});

test("a pod in the default namespace sees the API server's once", () => {
  assert.deepEqual(names(envFor([api], {}, "default")), ["KUBERNETES_SERVICE_HOST"]);
});

function attempt(state: KnownServices["state"], pod: IdentifiedPod): ReadonlyMap<string, string> {
  return serviceEnv(pod, state === "read" ? { state, services: [] } : { state });
}

test("services must have been read once, except for static pods", () => {
  const pod = examplePod();
  const annotations = { "kubernetes.io/config.source": "file" };
  const isStatic = { ...pod, metadata: { ...pod.metadata, annotations } };
  assert.throws(() => attempt("unread", pod), {
    name: "ConfigError",
    message: "services have not yet been read at least once, cannot construct envvars",
  });
  assert.equal(attempt("unread", isStatic).size, 0);
  assert.equal(attempt("none", pod).size, 0);
  assert.equal(attempt("read", pod).size, 0);
});

test("a pod that was never defaulted is refused", () => {
  assert.throws(() => attempt("none", examplePod({ enableServiceLinks: undefined })), {
    name: "ConfigError",
    message: "nil pod.spec.enableServiceLinks encountered, cannot construct envvars",
  });
});
