import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "../../ground/model/index.ts";
import { filledFields } from "./filled-fields.ts";
import { makeStaticPod } from "./make-static-pod.ts";

const settings = { nodeName: "vm", references: { prevent: true, allow: [] } };

function filled(written: Pod): Readonly<Record<string, string>> {
  const { pod, problems } = makeStaticPod(written, { source: "file", path: "/m/web.yaml" }, settings);
  assert.ok(pod !== undefined, JSON.stringify(problems));
  return Object.fromEntries([...filledFields(written, pod)].map(({ field, value }) => [field, value]));
}

test("what was not written is named with what it is taken to be", () => {
  const fields = filled({
    metadata: { name: "web", uid: "u1" },
    spec: { containers: [{ name: "main", image: "web:1" }] },
  });
  assert.deepEqual(
    Object.entries(fields).filter(([field]) => /^metadata|restart|Pull|tolerations/.test(field)),
    [
      ["metadata.name", '"web-vm"'],
      ["metadata.namespace", '"default"'],
      ["spec.containers[0].imagePullPolicy", '"IfNotPresent"'],
      ["spec.restartPolicy", '"Always"'],
      ["spec.tolerations", '[{"operator":"Exists","effect":"NoExecute"}]'],
    ],
  );
});

test("what was written is not, however it was", () => {
  const spec = { restartPolicy: "Never", dnsPolicy: "Default", containers: [{ name: "main", image: "web:1" }] };
  const fields = filled({ metadata: { name: "web", labels: { a: "b" } }, spec });
  for (const field of ["spec.restartPolicy", "spec.dnsPolicy", "metadata.labels", "spec.containers[0].image"]) {
    assert.ok(!(field in fields), field);
  }
  assert.ok(!Object.keys(fields).some((field) => field.includes("kubernetes.io/config")));
});

test("long values are cut", () => {
  const before = { spec: { containers: [] } };
  const after = { spec: { containers: [], nodeSelector: { a: "x".repeat(10_000) } } };
  const [field] = [...filledFields(before, after)];
  assert.equal(field?.field, "spec.nodeSelector");
  assert.ok((field?.value.length ?? 0) < 300);
});
