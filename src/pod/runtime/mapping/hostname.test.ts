import assert from "node:assert/strict";
import { test } from "node:test";
import { examplePod } from "../../../../test/support/example-context.ts";
import type { IdentifiedPod } from "../../../ground/model/index.ts";
import { kernelHostname, podHostname } from "./hostname.ts";

const settings = { clusterDomain: "cluster.local", overrideAllowed: false };
const x = (count: number): string => "x".repeat(count);

function named(name: string, spec: Partial<IdentifiedPod["spec"]> = {}): IdentifiedPod {
  const pod = examplePod(spec);
  return { ...pod, metadata: { ...pod.metadata, name } };
}

for (const [name, spec, expected] of [
  ["web", {}, { hostname: "web", domain: "" }],
  ["web", { hostname: "front" }, { hostname: "front", domain: "" }],
  ["web", { hostname: "" }, { hostname: "web", domain: "" }],
  ["web", { subdomain: "db" }, { hostname: "web", domain: "db.shop.svc.cluster.local" }],
  ["web", { hostname: "front", subdomain: "db" }, { hostname: "front", domain: "db.shop.svc.cluster.local" }],
  [x(63), {}, { hostname: x(63), domain: "" }],
  [x(64), {}, { hostname: x(63), domain: "" }],
  [`${x(62)}-tail`, {}, { hostname: x(62), domain: "" }],
  [`${x(60)}.-.tail`, {}, { hostname: x(60), domain: "" }],
  ["my.pod", {}, { hostname: "my.pod", domain: "" }],
  ["web", { hostnameOverride: "ignored" }, { hostname: "web", domain: "" }],
] as const) {
  test(`${name} with ${JSON.stringify(spec)}`, () =>
    assert.deepEqual(podHostname(named(name, spec), settings), expected));
}

test("with its gate the override is the whole name", () => {
  const allowed = { ...settings, overrideAllowed: true };
  const pod = examplePod({ hostname: "front", subdomain: "db", hostnameOverride: "a.b.example" });
  assert.deepEqual(podHostname(pod, allowed), { hostname: "a.b.example", domain: "" });
  const long = examplePod({ hostnameOverride: `${x(62)}.tail` });
  assert.deepEqual(podHostname(long, allowed), { hostname: x(62), domain: "" });
  assert.throws(() => podHostname(examplePod({ hostnameOverride: "Not_valid" }), allowed), {
    name: "ConfigError",
    message: /^pod HostnameOverride "Not_valid" is not a valid DNS subdomain: a lowercase RFC 1123 subdomain must/,
  });
});

const labelForm =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with " +
  "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

for (const [spec, message] of [
  [{ hostname: "Bad" }, `pod Hostname "Bad" is not a valid DNS label: ${labelForm}`],
  [{ hostname: "-bad" }, `pod Hostname "-bad" is not a valid DNS label: ${labelForm}`],
  [{ hostname: "a.b" }, 'pod Hostname "a.b" is not a valid DNS label: must not contain dots'],
  [{ hostname: x(64) }, `pod Hostname "${x(64)}" is not a valid DNS label: must be no more than 63 characters`],
  [{ subdomain: "Sub" }, `pod Subdomain "Sub" is not a valid DNS label: ${labelForm}`],
] as const) {
  test(`refused: ${message.slice(0, 60)}`, () =>
    assert.throws(() => podHostname(examplePod(spec), settings), { name: "ConfigError", message }));
}

test("the kernel's name is the full one only when asked for and there is a domain", () => {
  const full = { hostname: "web", domain: "db.shop.svc.cluster.local" };
  assert.equal(kernelHostname(full, {}), "web");
  assert.equal(kernelHostname(full, { setHostnameAsFQDN: false }), "web");
  assert.equal(kernelHostname(full, { setHostnameAsFQDN: true }), "web.db.shop.svc.cluster.local");
  assert.equal(kernelHostname({ hostname: "web", domain: "" }, { setHostnameAsFQDN: true }), "web");
});

test("a full name may have 64 characters and not one more", () => {
  const domain = "d.n.svc.cluster.local";
  const fits = x(64 - 1 - domain.length);
  assert.equal(kernelHostname({ hostname: fits, domain }, { setHostnameAsFQDN: true }).length, 64);
  const name = `${fits}x.${domain}`;
  assert.throws(() => kernelHostname({ hostname: `${fits}x`, domain }, { setHostnameAsFQDN: true }), {
    message:
      `failed to construct FQDN from pod hostname and cluster domain, FQDN ${name} is too long ` +
      "(64 characters is the max, 65 characters requested)",
  });
});
