import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { test } from "node:test";
import type { ClusterTrustBundleProjection, V1beta1ClusterTrustBundle } from "../../../ground/model/index.ts";
import { trustAnchors } from "./trust-bundles.ts";

function certificate(name: string): string {
  const args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj"];
  return execFileSync("openssl", [...args, `/CN=${name}`, "-keyout", "/dev/null", "-days", "1"], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
}
const [one, two, three] = ["one", "two", "three"].map(certificate) as [string, string, string];

function bundle(
  name: string,
  pem: string,
  signerName?: string,
  labels: Record<string, string> = {},
): V1beta1ClusterTrustBundle {
  return { metadata: { name, labels }, spec: { trustBundle: pem, ...(signerName !== undefined && { signerName }) } };
}
const bundles = [
  bundle("plain", `# a comment\n${one}\n${two}`),
  bundle("s:a", `${one}${three}`, "s", { tier: "gold" }),
  bundle("s:b", two, "s", { tier: "tin" }),
  bundle("other", three, "t"),
];

function names(projection: Omit<ClusterTrustBundleProjection, "path">): string[] {
  const pem = trustAnchors({ path: "p", ...projection }, bundles, "pod");
  const blocks = pem.match(/-----BEGIN[\s\S]*?END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block).subject.replace("CN=", "")).sort();
}

for (const { name, projection, expected } of [
  { name: "by name", projection: { name: "plain" }, expected: ["one", "two"] },
  { name: "by signer, all", projection: { signerName: "s", labelSelector: {} }, expected: ["one", "three", "two"] },
  {
    name: "by signer and label",
    projection: { signerName: "s", labelSelector: { matchLabels: { tier: "gold" } } },
    expected: ["one", "three"],
  },
  {
    name: "by expression",
    projection: {
      signerName: "s",
      labelSelector: { matchExpressions: [{ key: "tier", operator: "NotIn", values: ["gold"] }] },
    },
    expected: ["two"],
  },
  { name: "optional and missing", projection: { name: "absent", optional: true }, expected: [] },
  { name: "no selector matches nothing", projection: { signerName: "s", optional: true }, expected: [] },
]) {
  test(`chosen ${name}`, () => assert.deepEqual(names(projection), expected));
}

test("refused: missing without being optional", () => {
  assert.throws(() => names({ name: "absent" }), /clustertrustbundle "absent" not found/);
  assert.throws(() => names({ signerName: "s" }), /combination of signerName and labelSelector matched zero/);
  const huge = { matchLabels: { a: "x".repeat(200_000) } };
  assert.throws(() => names({ signerName: "s", labelSelector: huge }), /larger than 102400 bytes/);
});

test("each certificate once, in an order that is the same for a pod and differs between pods", () => {
  const all = { path: "p", signerName: "s", labelSelector: {} };
  const twice = [...bundles, bundle("s:c", `${one.replaceAll("\n", "\r\n")}`, "s")];
  const orders = new Set<string>();
  for (let pod = 0; pod < 20; pod++) {
    const text = trustAnchors(all, twice, `pod-${pod}`);
    assert.equal(trustAnchors(all, twice.toReversed(), `pod-${pod}`), text);
    assert.equal(text.match(/BEGIN/g)?.length, 3);
    orders.add(text);
  }
  assert.ok(orders.size > 1);
});

test("beginnings without an end are no certificates, however many there are", () => {
  // To look for an end from each of them anew would take minutes.
  const beginnings = "-----BEGIN CERTIFICATE-----\n".repeat(40_000);
  assert.equal(trustAnchors({ path: "p", name: "odd" }, [bundle("odd", beginnings)], "pod"), "");
});
