import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { freePort } from "../../../test/support/free-port.ts";
import { TraceCollector } from "../../../test/support/trace-collector.ts";
import { until } from "../../../test/support/until.ts";
import { type Clock, type Logger, silentLogger, systemClock, TaskScope } from "../../ground/base/index.ts";
import { collectorEndpoint } from "./endpoint.ts";
import { TraceSpan } from "./gen/trace.ts";
import { SpanExporter } from "./span-exporter.ts";

const spanNamed = (name: string): TraceSpan => TraceSpan.fromPartial({ name, traceId: Buffer.alloc(16, 1) });

function exporterTo(endpoint: string, clock: Clock = systemClock, log: Logger = silentLogger): SpanExporter {
  return new SpanExporter(
    {
      endpoint: collectorEndpoint(endpoint),
      resource: { "service.name": "kubelet" },
      scope: { name: "s", version: "1" },
      gatherMs: 20,
      exportMs: 300,
    },
    { clock, log },
  );
}

test("spans are brought together, with who sends them", async () => {
  using collector = await TraceCollector.start();
  await using scope = new TaskScope();
  const exporter = exporterTo(collector.endpoint);
  scope.spawn("traces", (signal) => exporter.run(signal));
  exporter.add(spanNamed("a"));
  exporter.add(spanNamed("b"));
  await until("they are there", () => collector.names.length === 2);
  const [request] = collector.got;
  assert.equal(collector.got.length, 1);
  assert.deepEqual(request?.resourceSpans[0]?.resource?.attributes[0]?.value?.stringValue, "kubelet");
  exporter.add(spanNamed("last words"));
  await scope.stop();
  assert.deepEqual(collector.names, ["a", "b", "last words"]);
});

for (const trouble of ["never answers", "talks rubbish"] as const) {
  test(`a collector that ${trouble} costs the spans it does not take, and is tried again`, async () => {
    using collector = await TraceCollector.start();
    collector.answer = trouble;
    await using scope = new TaskScope();
    const exporter = exporterTo(collector.endpoint);
    scope.spawn("traces", (signal) => exporter.run(signal));
    exporter.add(spanNamed("lost"));
    await until("it was asked", () => collector.names.length === 1);
    exporter.add(spanNamed("lost too, or not"));
    collector.answer = "takes";
    await until("it takes what comes", () => {
      exporter.add(spanNamed("later"));
      return collector.names.includes("later");
    });
    assert.equal(collector.names.filter((name) => name === "lost").length, 1);
  });
}

test("a dead collector: pauses that grow, no more than so many spans, no last words", async () => {
  const clock = new FakeClock();
  const said: string[] = [];
  const log = { ...silentLogger, warn: (text: string) => said.push(text) } as Logger;
  const exporter = exporterTo(`127.0.0.1:${await freePort()}`, clock, log);
  await using scope = new TaskScope();
  scope.spawn("traces", (signal) => exporter.run(signal));
  await settle(5);
  assert.equal(clock.pendingTimers, 0, "there is nothing to bring");
  for (let count = 0; count < 3000; count++) exporter.add(spanNamed("x"));
  assert.equal(exporter.dropped, 3000 - 2048);
  await until("it was tried", async () => {
    await clock.advance(20);
    return said.length > 0;
  });
  assert.deepEqual(said, ["Traces can't be delivered and are dropped"]);
  const before = systemClock.monotonic();
  await scope.stop();
  assert.ok(systemClock.monotonic() - before < 1000, "the agent ends at once");
});
