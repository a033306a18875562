import assert from "node:assert/strict";
import { test } from "node:test";
import { collectorEndpoint } from "./endpoint.ts";
import { isSampled, sampledParent, traceparentOf } from "./trace-context.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const spanId = "b7ad6b7169203331";

for (const { header, found } of [
  { header: `00-${traceId}-${spanId}-01`, found: true },
  { header: `00-${traceId}-${spanId}-03`, found: true },
  { header: `01-${traceId}-${spanId}-01-more`, found: true },
  { header: `00-${traceId}-${spanId}-00`, found: false },
  { header: `00-${traceId}-${spanId}-01-more`, found: false },
  { header: `ff-${traceId}-${spanId}-01`, found: false },
  { header: `00-${"0".repeat(32)}-${spanId}-01`, found: false },
  { header: `00-${traceId}-${"0".repeat(16)}-01`, found: false },
  { header: `00-${traceId.toUpperCase()}-${spanId}-01`, found: false },
  { header: `01-${traceId}-${spanId}-01-${"x".repeat(1000)}`, found: false },
  { header: "rubbish", found: false },
  { header: undefined, found: false },
]) {
  test(`${header?.slice(0, 70)} ${found ? "is followed" : "is not followed"}`, () => {
    assert.deepEqual(sampledParent(header), found ? { traceId, spanId } : undefined);
  });
}

test("what is passed on is read as the same", () => {
  assert.deepEqual(sampledParent(traceparentOf({ traceId, spanId })), { traceId, spanId });
});

for (const { last, perMillion, sampled } of [
  { last: "0000000000000000", perMillion: 1, sampled: true },
  { last: "0000000000000000", perMillion: 0, sampled: false },
  { last: "ffffffffffffffff", perMillion: 1_000_000, sampled: true },
  { last: "ffffffffffffffff", perMillion: 999_999, sampled: false },
  { last: "7fffffffffffffff", perMillion: 500_000, sampled: true },
  { last: "8000000000000000", perMillion: 500_000, sampled: false },
]) {
  test(`of a trace …${last}, ${perMillion} in a million ${sampled ? "are" : "are not"} recorded`, () => {
    assert.equal(isSampled(`${"1".repeat(16)}${last}`, perMillion), sampled);
  });
}

for (const { text, target } of [
  { text: "127.0.0.1:4317", target: "ipv4:127.0.0.1:4317" },
  { text: "[::1]:4317", target: "ipv6:[::1]:4317" },
  { text: "::1", target: "ipv6:[::1]:443" },
  { text: "dns:///127.0.0.1:1", target: "ipv4:127.0.0.1:1" },
  { text: "dns:127.0.0.1", target: "ipv4:127.0.0.1:443" },
  { text: "unix:///run/otel.sock", target: "unix:/run/otel.sock" },
  { text: "unix:run/otel.sock", target: "unix:run/otel.sock" },
]) {
  test(`endpoint ${text} is ${target}`, async () => {
    assert.equal(await collectorEndpoint(text).resolve(new AbortController().signal), target);
  });
}

test("without an endpoint, the usual one", () => {
  assert.deepEqual(
    [collectorEndpoint(undefined).shown, collectorEndpoint("").shown],
    ["localhost:4317", "localhost:4317"],
  );
});
