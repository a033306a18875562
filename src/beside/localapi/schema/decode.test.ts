import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DecodeError, decode } from "./decode.ts";

describe("decoding", () => {
  test("leaves out what is null, empty or unknown, and names the unknown", () => {
    const input = {
      metadata: { labels: {}, annotations: null, finalizers: [], name: "a" },
      spec: { containers: [{ name: "c", colour: 1, command: [] }], volumes: [{ name: "v", emptyDir: {} }], foo: 1 },
      bar: {},
    };
    assert.deepEqual(decode(input, "core.v1.Pod"), {
      value: {
        metadata: { name: "a" },
        spec: { containers: [{ name: "c" }], volumes: [{ name: "v", emptyDir: {} }] },
      },
      unknownFields: ["spec.containers[0].colour", "spec.foo", "bar"],
    });
  });

  test("keeps an empty list that must be there", () => {
    assert.deepEqual(decode({ spec: { drivers: [] } }, "storage.v1.CSINode").value, { spec: { drivers: [] } });
  });

  for (const [given, expected] of [
    ["0.5", "500m"],
    [2, "2"],
    ["1024Mi", "1Gi"],
    ["1e3", "1k"],
  ] as const) {
    test(`the quantity ${given}`, () => {
      const { value } = decode({ status: { capacity: { x: given } } }, "core.v1.Node");
      assert.deepEqual(value, { status: { capacity: { x: expected } } });
    });
  }

  for (const [given, expected] of [
    ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"],
    ["2026-01-01T02:00:00.123456789+02:00", "2026-01-01T00:00:00Z"],
  ] as const) {
    test(`the time ${given}`, () => {
      // Times that are not told are shown as null, as upstream shows them.
      const others = { firstTimestamp: null, eventTime: null };
      assert.deepEqual(decode({ lastTimestamp: given }, "core.v1.Event").value, { lastTimestamp: expected, ...others });
    });
  }

  test("a time in microseconds", () => {
    const { value } = decode({ spec: { renewTime: "2026-01-01T02:00:00.123456+02:00" } }, "coordination.v1.Lease");
    assert.deepEqual(value, { spec: { renewTime: "2026-01-01T00:00:00.123456Z" } });
    for (const renewTime of ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00.1234567Z"]) {
      assert.throws(() => decode({ spec: { renewTime } }, "coordination.v1.Lease"), DecodeError);
    }
  });

  for (const [title, input] of [
    ["text for a number", { spec: { priority: "1" } }],
    ["a fraction for a whole number", { spec: { priority: 1.5 } }],
    ["a number for text", { spec: { nodeName: 1 } }],
    ["a list for an object", { spec: [] }],
    ["an object for a list", { spec: { containers: {} } }],
    ["what is no quantity", { spec: { overhead: { cpu: "much" } } }],
    ["what is no time", { metadata: { creationTimestamp: "yesterday" } }],
  ] as const) {
    test(`${title} is refused`, () => assert.throws(() => decode(input, "core.v1.Pod"), DecodeError));
  }
});

test("a list that must be there is at least empty", () => {
  assert.deepEqual(decode({ spec: { hostname: "h" } }, "core.v1.Pod").value, {
    spec: { hostname: "h", containers: [] },
  });
});
