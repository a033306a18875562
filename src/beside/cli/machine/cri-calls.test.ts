import assert from "node:assert/strict";
import { test } from "node:test";
import { ListPodSandboxResponse } from "../../../connections/cri/index.ts";
import { readFields } from "./cri-calls.ts";

test("sandboxes are read from what a runtime sends, whatever other fields it fills", () => {
  const empty = { labels: {}, annotations: {}, runtimeHandler: "runc" };
  const long = "x".repeat(300);
  const message = ListPodSandboxResponse.encode({
    items: [
      {
        ...empty,
        id: "a",
        metadata: { name: "web", uid: "u-1", namespace: "default", attempt: 3 },
        state: 1,
        createdAt: 2n ** 60n,
      },
      {
        ...empty,
        id: long,
        metadata: { name: "x", uid: "u-2", namespace: "default", attempt: 0 },
        state: 0,
        createdAt: 5n,
        labels: { k: "v" },
      },
    ],
  }).finish();
  const items = readFields(Buffer.from(message)).get(1) ?? [];
  const sandboxes = items.map((item) => {
    const fields = readFields(item);
    return [
      fields.get(1)?.[0]?.toString(),
      readFields(fields.get(2)?.[0] ?? Buffer.alloc(0))
        .get(2)?.[0]
        ?.toString(),
    ];
  });
  assert.deepEqual(sandboxes, [
    ["a", "u-1"],
    [long, "u-2"],
  ]);
});
