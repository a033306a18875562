import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { manifest, SourceEars, temporaryDirectory } from "../../../test/support/pod-source.ts";
import { TaskScope } from "../../ground/base/index.ts";
import { getManifest } from "./get-manifest.ts";
import { HttpSource, type HttpSourceSettings } from "./http-source.ts";

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

const body =
  (text: string, status = 200): Answer =>
  (_, response) =>
    response.writeHead(status).end(text);

async function startServer(first: Answer) {
  const state = { answer: first, requests: [] as IncomingMessage[] };
  const server = createServer((request, response) => {
    state.requests.push(request);
    state.answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/pods`,
    requests: state.requests,
    answer: (next: Answer) => {
      state.answer = next;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function startSource(first: Answer, overrides: Partial<HttpSourceSettings> = {}) {
  const server = await startServer(first);
  const temporary = await temporaryDirectory();
  const settings: HttpSourceSettings = {
    url: server.url,
    headers: {},
    checkFrequencyMs: 40,
    lastGoodDirectory: join(temporary.path, "saved"),
    nodeName: "n",
    references: { prevent: true, allow: [] },
    ...overrides,
  };
  let scope = new TaskScope();
  const start = (): SourceEars => {
    const ears = new SourceEars();
    scope.spawn("http source", (signal) => new HttpSource(settings, ears.ports).run(signal));
    return ears;
  };
  return {
    ears: start(),
    server,
    restart: async () => {
      await scope.stop();
      scope = new TaskScope();
      return start();
    },
    [Symbol.asyncDispose]: async () => {
      assert.equal(scope.signal.aborted, false, String(scope.signal.reason?.cause));
      await scope.stop();
      await server[Symbol.asyncDispose]();
      await temporary[Symbol.asyncDispose]();
    },
  };
}

const delivered = (ears: SourceEars, ...names: readonly string[]): Promise<void> =>
  ears.until(`pods are ${names.join(", ")}`, () => ears.pods?.join() === names.join());

const list = (...names: readonly string[]): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "PodList",
    items: names.map((name) => ({ metadata: { name }, spec: { containers: [{ name: "c", image: "i:1" }] } })),
  });

test("a pod, then a list of pods; the same answer is delivered once", async () => {
  await using source = await startSource(body(manifest("a")));
  const { ears, server } = source;
  await delivered(ears, "a-n");
  await ears.untilNextRounds(3);
  assert.equal(ears.deliveries.length, 1);
  assert.equal(ears.deliveries[0]?.[0]?.spec.tolerations, undefined);
  server.answer(body(list("b", "c")));
  await delivered(ears, "b-n", "c-n");
  server.answer(body(list()));
  await delivered(ears);
  assert.deepEqual(ears.reports, []);
});

test("headers are sent, with several values each", async () => {
  await using source = await startSource(body(manifest("a")), {
    headers: { "X-Token": ["secret"], "X-Many": ["one", "two"] },
  });
  await delivered(source.ears, "a-n");
  const { headers, method } = source.server.requests[0] ?? {};
  assert.deepEqual([method, headers?.["x-token"], headers?.["x-many"]], ["GET", "secret", "one, two"]);
});

test("an empty answer removes every pod and is reported", async () => {
  await using source = await startSource(body(manifest("a")));
  const { ears, server } = source;
  await delivered(ears, "a-n");
  server.answer(body(""));
  await delivered(ears);
  await ears.until("it is reported", () => ears.reports.length > 0);
  assert.deepEqual(ears.problemsOf(server.url), [`zero-length data received from ${server.url}`]);
  const again = await source.restart();
  await delivered(again);
});

test("a status other than 200 keeps the pods; the first three failures are warnings", async () => {
  await using source = await startSource(body(manifest("a")));
  const { ears, server } = source;
  await delivered(ears, "a-n");
  server.answer(body("gone", 404));
  await ears.until("it failed often", () => ears.logs.filter((line) => line.includes("Failed to read")).length >= 5);
  assert.deepEqual(ears.pods, ["a-n"]);
  assert.deepEqual(ears.problemsOf(server.url), [`${server.url}: 404 Not Found`]);
  assert.equal(ears.reports.length, 1);
  assert.deepEqual(
    ears.reports[0]?.keeping.map(({ metadata }) => metadata.name),
    ["a-n"],
  );
  const levels = ears.logs.filter((line) => line.includes("Failed to read")).map((line) => line.split(" ", 1)[0]);
  assert.deepEqual(levels.slice(0, 5), ["warn", "warn", "warn", "debug4", "debug4"]);
  server.answer(body(manifest("a")));
  await ears.until("it is well again", () => ears.problemsOf(server.url)?.length === 0);
  assert.equal(ears.deliveries.length, 1, "the same answer as before the failure changes nothing");
});

test("a bad answer keeps the pods and names what is wrong; one bad pod refuses the whole list", async () => {
  await using source = await startSource(body(list("a", "b")));
  const { ears, server } = source;
  await delivered(ears, "a-n", "b-n");
  server.answer(body(list("a", "B", "c")));
  await ears.until("it is reported", () => ears.reports.length > 0);
  assert.match(
    ears.problemsOf(server.url)?.join("\n") ?? "",
    /^items\[1\]\.metadata\.name: Invalid value: "B-n": a lowercase RFC 1123/,
  );
  server.answer(body("kind: Deployment\napiVersion: apps/v1\n"));
  await ears.until("the other problem is told", () => ears.reports.length > 1);
  assert.deepEqual(ears.problemsOf(server.url), [
    'apiVersion: Unsupported value: "apps/v1": supported values: "v1" (line 2, column 13)',
    'kind: Unsupported value: "Deployment": supported values: "Pod", "PodList" (line 1, column 7)',
  ]);
  assert.deepEqual(ears.pods, ["a-n", "b-n"]);
  assert.deepEqual(ears.reports.at(-1)?.keeping.length, 2);
});

for (const { name, answer } of [
  { name: "bad", answer: body("broken: [") },
  { name: "failing", answer: body("", 500) },
]) {
  test(`after a restart a ${name} answer leaves the pods of the last good one`, async () => {
    await using source = await startSource(body(list("a", "b")));
    await delivered(source.ears, "a-n", "b-n");
    await source.ears.untilNextRounds(1);
    const uids = source.ears.deliveries[0]?.map(({ metadata }) => metadata.uid);
    source.server.answer(answer);
    const ears = await source.restart();
    await delivered(ears, "a-n", "b-n");
    assert.deepEqual(
      ears.deliveries[0]?.map(({ metadata }) => metadata.uid),
      uids,
    );
  });
}

test("without an earlier run a failing URL delivers nothing, so that nothing is cleaned up", async () => {
  await using source = await startSource(body("", 503));
  await source.ears.untilNextRounds(3);
  assert.deepEqual(source.ears.deliveries, []);
  assert.deepEqual(source.ears.problemsOf(source.server.url), [`${source.server.url}: 503 Service Unavailable`]);
});

test("a server that is not there is reported, and its pods come when it does", async () => {
  const server = await startServer(body(manifest("a")));
  await server[Symbol.asyncDispose]();
  await using source = await startSource(body(manifest("a")), { url: server.url });
  await source.ears.until("it is reported", () => source.ears.reports.length > 0);
  assert.match(source.ears.problemsOf(server.url)?.[0] ?? "", /^Cannot read http:.*ECONNREFUSED/);
});

test("redirects are followed, without private headers to another host", async () => {
  await using other = await startServer(body(manifest("a")));
  const elsewhere = other.url.replace("127.0.0.1", "localhost");
  await using source = await startSource(
    (request, response) =>
      request.url === "/pods"
        ? response.writeHead(302, { location: "/moved" }).end()
        : response.writeHead(307, { location: elsewhere }).end(),
    { headers: { Authorization: ["Bearer x"], "X-Plain": ["y"] } },
  );
  await delivered(source.ears, "a-n");
  assert.equal(source.server.requests[1]?.headers.authorization, "Bearer x");
  assert.equal(other.requests[0]?.headers.authorization, undefined);
  assert.equal(other.requests[0]?.headers["x-plain"], "y");
});

test("endless redirects and answers that are too large or too slow end in a problem", async () => {
  const signal = new AbortController().signal;
  const { clock } = new SourceEars().ports;
  await using server = await startServer((_, response) => response.writeHead(302, { location: "/pods" }).end());
  const get = { url: server.url, headers: {}, timeoutMs: 5000, maxBytes: 10 };
  await assert.rejects(getManifest(get, clock, signal), /stopped after 10 redirects/);
  assert.equal(server.requests.length, 11);
  server.answer(body("12345678901234567890"));
  assert.equal(
    (await getManifest(get, clock, signal)).body.byteLength,
    11,
    "one more than allowed shows that it is too much",
  );
  server.answer((_, response) => response.writeHead(200).write("a"));
  await assert.rejects(getManifest({ ...get, timeoutMs: 50 }, clock, signal), /no complete answer within 0\.05 s/);
});

test("a password in the URL is not shown", async () => {
  await using server = await startServer(body("", 401));
  const url = server.url.replace("http://", "http://me:hush@");
  await using source = await startSource(body(""), { url });
  await source.ears.until("it is reported", () => source.ears.reports.length > 0);
  assert.equal(server.requests[0]?.headers.authorization, `Basic ${Buffer.from("me:hush").toString("base64")}`);
  assert.equal(JSON.stringify([source.ears.reports, source.ears.logs]).includes("hush"), false);
});
