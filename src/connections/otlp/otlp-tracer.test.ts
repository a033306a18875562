import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { TestServer } from "../../../test/support/node-api.ts";
import { WholeAgent } from "../../../test/support/whole-agent.ts";
import { never, silentLogger, systemClock } from "../../ground/base/index.ts";
import type { ApiCall } from "../../node/server/api/router.ts";
import { CriClient } from "../cri/index.ts";
import { KubeClient } from "../kube/client.ts";
import { resources } from "../kube/resources.ts";
import type { TraceSpan } from "./gen/trace.ts";
import { OtlpTracer } from "./otlp-tracer.ts";

const parent = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
const traceparent = `00-${parent.traceId}-${parent.spanId}-01`;

function recording(perMillion: number, clock = new FakeClock()) {
  const spans: TraceSpan[] = [];
  return { spans, clock, tracer: new OtlpTracer(perMillion, { clock, add: (span) => spans.push(span) }) };
}

const hex = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString("hex");
const attributesOf = (span: TraceSpan | undefined) =>
  Object.fromEntries(span?.attributes.map(({ key, value }) => [key, value?.stringValue ?? value?.intValue]) ?? []);

test("spans within a span are its children, whatever is awaited between", async () => {
  const { spans, clock, tracer } = recording(1_000_000);
  const result = await tracer.span({ name: "outer", mayBegin: true, attributes: { a: "b" } }, async (note) => {
    const beside = tracer.begin({ name: "beside" });
    await beside?.within(async () => {
      await Promise.resolve();
      tracer.begin({ name: "below" })?.end();
    });
    await clock.advance(1_500);
    const inner = tracer.span({ name: "inner", kind: "client" }, async () => {
      await Promise.resolve();
      throw new Error("it broke");
    });
    await assert.rejects(inner, /it broke/);
    note("n", 7);
    beside?.end();
    return 42;
  });
  assert.equal(result, 42);
  const [below, inner, beside, outer] = spans;
  assert.deepEqual([below?.name, hex(below?.parentSpanId)], ["below", hex(beside?.spanId)]);
  assert.deepEqual([inner?.name, beside?.name, outer?.name], ["inner", "beside", "outer"]);
  for (const child of [inner, beside]) {
    assert.equal(hex(child?.traceId), hex(outer?.traceId));
    assert.equal(hex(child?.parentSpanId), hex(outer?.spanId));
  }
  assert.equal(hex(outer?.parentSpanId), "");
  assert.deepEqual([inner?.kind, inner?.status?.code, inner?.status?.message], [3, 2, "it broke"]);
  assert.equal(outer?.status, undefined);
  assert.deepEqual(attributesOf(outer), { a: "b", n: 7n });
  assert.equal((outer?.endTimeUnixNano ?? 0n) - (outer?.startTimeUnixNano ?? 0n), 1_500_000_000n);
});

test("without chance there is no trace; with a parent that is recorded there is", async () => {
  const { spans, tracer } = recording(0);
  const inside = await tracer.span({ name: "none", mayBegin: true }, async () => tracer.traceparent());
  assert.equal(inside, undefined);
  assert.equal(tracer.begin({ name: "none" }), undefined);
  const passed = await tracer.span({ name: "of another", traceparent }, async () => tracer.traceparent());
  assert.equal(spans.length, 1);
  assert.equal(hex(spans[0]?.parentSpanId), parent.spanId);
  assert.equal(passed, `00-${parent.traceId}-${hex(spans[0]?.spanId)}-01`);
});

test("what a log would not say, no span says", async () => {
  const { spans, tracer } = recording(1_000_000);
  const address = `https://me:hunter2@example.org/${"x".repeat(2_000)}`;
  await assert.rejects(
    tracer.span({ name: `GET ${address}`, mayBegin: true, attributes: { address } }, async () => {
      throw new Error(`${address}: Authorization: Bearer hunter2hunter2`);
    }),
  );
  const [span] = spans;
  const told = [span?.name, attributesOf(span)["address"], span?.status?.message].map(String);
  for (const text of told) {
    assert.doesNotMatch(text, /hunter2/);
    assert.match(text, /example\.org/);
    assert.ok(text.length <= 1024);
  }
});

test("what a span leaves behind is no part of it: timers, loops, and the next beginning", async () => {
  const { spans, clock, tracer } = recording(1_000_000);
  const late: (string | undefined)[] = [];
  await tracer.span({ name: "first", mayBegin: true }, async () => {
    clock.after(1000, () => {
      late.push(tracer.traceparent());
      assert.equal(tracer.begin({ name: "late" }), undefined);
    });
    await tracer.span({ name: "second", mayBegin: true }, async () => {});
  });
  await clock.advance(1000);
  assert.deepEqual(late, [undefined]);
  assert.deepEqual(
    spans.map(({ name, parentSpanId }) => [name, hex(parentSpanId)]),
    [
      ["second", ""],
      ["first", ""],
    ],
  );
  assert.notEqual(hex(spans[0]?.traceId), hex(spans[1]?.traceId));
});

test("calls to the runtime carry the trace, and are spans of it", async () => {
  const directory = await mkdtemp(join(tmpdir(), "traces-"));
  const seen: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    seen.push(request.headers["traceparent"] as string | undefined);
    request.resume();
    response.writeHead(200, { "content-type": "application/grpc", "grpc-status": "12" });
    response.end();
  }).listen(join(directory, "cri.sock"));
  await once(server, "listening");
  const { spans, tracer } = recording(1_000_000);
  const settings = { runtimeEndpoint: `unix://${join(directory, "cri.sock")}`, requestTimeoutMs: 60_000 };
  const client = new CriClient(settings, { clock: systemClock, tracer });
  const version = (): Promise<unknown> => client.runtime.version({ version: "" }).catch(() => {});
  await version();
  await tracer.span({ name: "sync", mayBegin: true }, version);
  client.close();
  server.close();
  await rm(directory, { recursive: true });
  const [call, sync] = spans;
  assert.deepEqual([call?.name, sync?.name], ["runtime.v1.RuntimeService/Version", "sync"]);
  assert.equal(attributesOf(call)["rpc.method"], "Version");
  assert.deepEqual(seen, [undefined, `00-${hex(sync?.traceId)}-${hex(call?.spanId)}-01`]);
});

test("requests to the API server carry the trace, and are spans of it", async () => {
  const { spans, clock, tracer } = recording(1_000_000);
  const seen: unknown[] = [];
  const client = new KubeClient(
    { userAgent: "x", timeoutMs: 1000, throttle: undefined },
    {
      transport: {
        send: async ({ headers }) => {
          seen.push(headers["traceparent"]);
          return { status: 200, header: () => undefined, body: Readable.from(["{}"]) };
        },
      },
      credentials: { refused: () => false },
      clock,
      log: silentLogger,
      tracer,
    },
  );
  const get = (): Promise<unknown> => client.get(resources.pods, { namespace: "a", name: "b" }, {}, never);
  await get();
  await tracer.span({ name: "sync", mayBegin: true }, get);
  const [call, sync] = spans;
  assert.deepEqual(attributesOf(call), {
    "http.method": "GET",
    "http.target": "/api/v1/namespaces/a/pods/b",
    "http.status_code": 200n,
  });
  assert.deepEqual(seen, [undefined, `00-${hex(sync?.traceId)}-${hex(call?.spanId)}-01`]);
});

test("requests to the node's API follow the trace of who was let in, and of nobody else", async () => {
  const { spans, tracer } = recording(0);
  const handle = ({ response }: ApiCall): void => void response.end("{}");
  const mounts = [{ type: "path", path: "/pods", handle }] as const;
  const refuse = async (request: { headers: Record<string, unknown> }) =>
    request.headers["authorization"] === undefined ? ({ status: 401, text: "who?" } as const) : undefined;
  await using server = await TestServer.start(mounts, { tracer, gate: { refuse } });
  await server.ask("/pods", { headers: { traceparent } });
  assert.equal(spans.length, 0);
  const headers = { traceparent, authorization: "x" };
  assert.equal((await server.ask("/pods", { headers })).status, 200);
  await server.ask("/pods", { headers: { authorization: "x" } });
  assert.deepEqual(
    spans.map(({ name, kind, parentSpanId }) => [name, kind, hex(parentSpanId)]),
    [["GET /pods", 2, parent.spanId]],
  );
  assert.equal(attributesOf(spans[0])["http.status_code"], 200n);
});

test("the start of a pod is a trace of its steps", async () => {
  const { spans, tracer } = recording(1_000_000);
  await using whole = await WholeAgent.start({ tracer });
  const lifecycle = { preStop: { sleep: { seconds: 1 } } };
  whole.create("web", { containers: [{ name: "main", image: "busybox:1", lifecycle }] });
  await whole.until("it runs", () => whole.pod("web")?.status?.phase === "Running");
  const sandbox = spans.find(({ name }) => name === "sandbox");
  const root = spans.find(({ spanId }) => hex(spanId) === hex(sandbox?.parentSpanId));
  assert.equal(root?.name, "syncPod");
  const { "k8s.pod.name": name, "k8s.namespace.name": namespace } = attributesOf(root);
  assert.deepEqual([name, namespace], ["web", "default"]);
  const steps = spans.filter(({ traceId }) => hex(traceId) === hex(root?.traceId)).map((span) => span.name);
  for (const step of ["cgroup", "volumes", "sandbox", "pull", "create", "start"]) assert.ok(steps.includes(step), step);
  whole.delete("web", 5);
  await whole.until("it is gone", () => whole.pod("web") === undefined);
  const [hook, kill] = ["hook", "kill"].map((name) => spans.find((span) => span.name === name));
  assert.equal(hex(hook?.parentSpanId), hex(kill?.spanId), "what a step does lies below it");
  assert.ok(spans.some((span) => span.name === "syncTerminatingPod"));
});
