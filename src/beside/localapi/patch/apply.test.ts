import assert from "node:assert/strict";
import { test } from "node:test";
import { applyConfiguration } from "./apply.ts";

test("list items are told apart by all their keys", () => {
  const from = { spec: { containers: [{ name: "a", ports: [{ containerPort: 53, protocol: "UDP" }] }] } };
  const configuration = {
    spec: {
      containers: [
        {
          name: "a",
          ports: [
            { containerPort: 53, protocol: "TCP" },
            { containerPort: 53, protocol: "UDP", name: "dns" },
          ],
        },
      ],
    },
  };
  assert.deepEqual(applyConfiguration(from, configuration, "core.v1.Pod"), {
    spec: {
      containers: [
        {
          name: "a",
          ports: [
            { containerPort: 53, protocol: "UDP", name: "dns" },
            { containerPort: 53, protocol: "TCP" },
          ],
        },
      ],
    },
  });
});

test("a port without a protocol is the TCP port that is stored", () => {
  const from = { spec: { ports: [{ port: 80, protocol: "TCP", nodePort: 30_000 }] } };
  const applied = applyConfiguration(from, { spec: { ports: [{ port: 80, name: "web" }] } }, "core.v1.Service");
  assert.deepEqual(applied, { spec: { ports: [{ port: 80, protocol: "TCP", nodePort: 30_000, name: "web" }] } });
});

test("what is atomic is replaced whole, all else is merged", () => {
  const from = {
    spec: { nodeSelector: { a: "1" }, tolerations: [{ key: "a" }], hostname: "h" },
    metadata: { labels: { x: "1" } },
  };
  const configuration = {
    spec: { nodeSelector: { b: "2" }, tolerations: [{ key: "b" }] },
    metadata: { labels: { y: "2" } },
  };
  assert.deepEqual(applyConfiguration(from, configuration, "core.v1.Pod"), {
    spec: { nodeSelector: { b: "2" }, tolerations: [{ key: "b" }], hostname: "h" },
    metadata: { labels: { x: "1", y: "2" } },
  });
});
