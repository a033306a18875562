import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { viewsOf } from "../../../test/support/node-api.ts";
import { FakeRuntime } from "../../beside/hollow/index.ts";
import { type LedgerView, silentLogger, systemClock, TaskScope } from "../../ground/base/index.ts";
import type { Pod, PodUid, PodViewChange } from "../../ground/model/index.ts";
import { type DoctorSummary, HealthRegistry, LocalSocketServer, type LocalViews } from "./index.ts";
import { findPod } from "./pod-list.ts";
import { WaitingChanges } from "./pod-watch.ts";

const directory = mkdtempSync(join(tmpdir(), "nodelet-local-"));
after(() => rmSync(directory, { recursive: true, force: true }));

function pod(name: string, namespace = "default", phase: "Pending" | "Running" = "Running"): Pod {
  return { metadata: { name, namespace, uid: `uid-${namespace}-${name}` }, status: { phase } };
}

/** The pods of an agent, changed by the test. */
class FakePods implements LocalViews {
  readonly #pods = new Map<string, Pod>();
  readonly #listeners = new Set<(change: PodViewChange) => void>();
  constructor(...pods: readonly Pod[]) {
    for (const each of pods) this.#pods.set(each.metadata?.uid ?? "", each);
  }
  get listeners(): number {
    return this.#listeners.size;
  }
  pods(): readonly Pod[] {
    return [...this.#pods.values()];
  }
  ownUid(apiUid: string): PodUid {
    return apiUid as PodUid;
  }
  watchPods(listener: (change: PodViewChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
  ledger(uid: string): LedgerView | undefined {
    if (!this.#pods.has(uid)) return undefined;
    const entry = { step: "seen", subject: "", startedAt: 5, endedAt: 5, outcome: "ok", message: uid } as const;
    return { entries: [entry], dropped: 0, blocker: undefined };
  }
  set(changed: Pod): void {
    const uid = changed.metadata?.uid ?? "";
    const type = this.#pods.has(uid) ? "MODIFIED" : "ADDED";
    this.#pods.set(uid, changed);
    for (const listener of this.#listeners) listener({ type, object: changed });
  }
  delete(gone: Pod): void {
    this.#pods.delete(gone.metadata?.uid ?? "");
    for (const listener of this.#listeners) listener({ type: "DELETED", object: gone });
  }
}

let sockets = 0;
async function start(scope: TaskScope, views: LocalViews, path = join(directory, `${sockets++}.sock`)) {
  const { runtime } = new FakeRuntime({ clock: systemClock });
  const clock = new FakeClock(1_000);
  const health = new HealthRegistry(clock);
  const logVerbosity = { verbosity: 2 };
  const examined: DoctorSummary[] = [];
  const resources = async () => ({ nodes: [] });
  const progress = { bytes: 5, totalBytes: 10, layers: { done: 1, total: 2 } };
  const pulls = async () => [{ image: "busybox", podUids: ["uid-default-pulling"], ageMs: 3, progress }];
  const plans = { shutdown: () => ({ totalSeconds: 30 }) };
  const configz = () => ({ kubeletconfig: { port: 10250 } });
  const server = new LocalSocketServer(path, {
    views,
    health,
    configz,
    logVerbosity,
    plans,
    pulls,
    self: {
      config: async () => ({ nodeName: "n" }),
      state: () => ({ pid: 7 }),
      examined: (found) => void examined.push(found),
    },
    resources,
    runtime,
    runtimeViews: viewsOf(runtime),
    statistics: { get: () => Promise.reject(new Error("no runtime yet")) },
    clock,
    log: silentLogger,
    planManifest: async ({ name, bytes }) => ({ name, bytes: bytes.byteLength }),
    dryRuns: new Map([["say", async (question: URLSearchParams) => ({ asked: question.get("what") })]]),
  });
  await server.listen();
  scope.spawn("local", (signal) => server.serve(signal));
  return { path, health, logVerbosity, examined };
}

async function ask(socketPath: string, path: string, method = "GET", body = ""): Promise<IncomingMessage> {
  const sent = request({ socketPath, path, method, agent: false });
  // A server that has refused need not read on.
  sent.on("error", () => {}).end(body);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return response;
}

async function answer(...args: Parameters<typeof ask>): Promise<{ status: number | undefined; text: string }> {
  const response = await ask(...args);
  let text = "";
  for await (const chunk of response) text += String(chunk);
  return { status: response.statusCode, text };
}

test("the socket belongs to its owner alone and goes when the server stops", async () => {
  await using scope = new TaskScope();
  const { path } = await start(scope, new FakePods());
  assert.equal(statSync(path).mode & 0o777, 0o600);
  await scope.stop();
  assert.equal(existsSync(path), false);
});

for (const [path, field, value] of [
  ["/config", "nodeName", "n"],
  ["/self", "pid", 7],
] as const) {
  test(`${path} is what the agent says of itself`, async () => {
    await using scope = new TaskScope();
    const { path: socket } = await start(scope, new FakePods());
    assert.deepEqual(JSON.parse((await answer(socket, path)).text), { [field]: value });
  });
}

test("/pods lists the pods with their status", async () => {
  await using scope = new TaskScope();
  const { path } = await start(scope, new FakePods(pod("web")));
  const list = JSON.parse((await answer(path, "/pods")).text) as { kind: string; items: Pod[] };
  assert.equal(list.kind, "PodList");
  assert.deepEqual(list.items, [{ kind: "Pod", apiVersion: "v1", ...pod("web") }]);
});

for (const [ref, uid] of [
  ["web", "uid-default-web"],
  ["default/web", "uid-default-web"],
  ["uid-default-web", "uid-default-web"],
  ["other/db", "uid-other-db"],
] as const) {
  test(`/ledger?pod=${ref}`, async () => {
    await using scope = new TaskScope();
    const { path } = await start(scope, new FakePods(pod("web"), pod("db"), pod("db", "other")));
    const { text } = await answer(path, `/ledger?pod=${encodeURIComponent(ref)}`);
    const { pod: found, ledger, now } = JSON.parse(text);
    assert.equal(found.uid, uid);
    assert.equal(found.phase, "Running");
    assert.equal(ledger.entries[0].message, uid);
    assert.equal(now, 1_000);
  });
}

for (const [ref, status, words] of [
  ["db", 409, 'several pods have the name "db": default/db, other/db; say which\n'],
  ["nope", 404, 'there is no pod "nope" on this node\n'],
  ["", 404, 'there is no pod "" on this node\n'],
] as const) {
  test(`/ledger?pod=${ref} is answered with ${status}`, async () => {
    await using scope = new TaskScope();
    const { path } = await start(scope, new FakePods(pod("db"), pod("db", "other")));
    assert.deepEqual(await answer(path, `/ledger?pod=${ref}`), { status, text: words });
  });
}

test("/pods?pod= is one pod, by the same rules", async () => {
  await using scope = new TaskScope();
  const { path } = await start(scope, new FakePods(pod("web"), pod("db"), pod("db", "other")));
  const { items } = JSON.parse((await answer(path, "/pods?pod=other/db")).text);
  assert.deepEqual(items, [{ kind: "Pod", apiVersion: "v1", ...pod("db", "other") }]);
  assert.equal((await answer(path, "/pods?pod=db")).status, 409);
  assert.equal((await answer(path, "/pods?pod=nope")).status, 404);
});

test("/waiting is every pod that waits, the longest first", async () => {
  await using scope = new TaskScope();
  const waitsFor = (name: string, lastTransitionTime: string): Pod => ({
    ...pod(name),
    status: {
      phase: "Running",
      conditions: [{ type: "Ready", status: "False", reason: "NotReady", lastTransitionTime }],
    },
  });
  const ended: Pod = { ...waitsFor("ended", "1970-01-01T00:00:00Z"), status: { phase: "Succeeded" } };
  const pods = [pod("fine"), waitsFor("young", "2026-01-02T00:00:00Z"), waitsFor("old", "2026-01-01T00:00:00Z"), ended];
  const views = new FakePods(...pods);
  const blocker = { reason: "ImagePullBackOff", message: "no", since: 7, nextTryAt: 9 };
  const running = { step: "pull", subject: "busybox", startedAt: 8, outcome: "running" } as const;
  views.set(pod("blocked"));
  views.set(pod("pulling"));
  views.ledger = (uid) => ({
    entries: uid === "uid-default-pulling" ? [running] : [],
    dropped: 0,
    blocker: uid === "uid-default-blocked" ? blocker : undefined,
  });
  const { path } = await start(scope, views);
  const progress = { bytes: 5, totalBytes: 10, layers: { done: 1, total: 2 } };
  const ledger = JSON.parse((await answer(path, "/ledger?pod=pulling")).text);
  assert.deepEqual(ledger.pulls, [{ image: "busybox", podUids: ["uid-default-pulling"], ageMs: 3, progress }]);
  assert.deepEqual(JSON.parse((await answer(path, "/ledger?pod=fine")).text).pulls, []);
  assert.deepEqual(JSON.parse((await answer(path, "/pulls")).text), { pulls: ledger.pulls });
  const { pods: found, now } = JSON.parse((await answer(path, "/waiting")).text);
  assert.equal(now, 1_000);
  assert.deepEqual(
    found.map(({ name, waitingFor }: { name: string; waitingFor: object }) => [name, waitingFor]),
    [
      ["blocked", blocker],
      ["pulling", { reason: "pull busybox", message: "", since: 8, progress }],
      ["old", { reason: "NotReady", message: "", since: Date.parse("2026-01-01") }],
      ["young", { reason: "NotReady", message: "", since: Date.parse("2026-01-02") }],
    ],
  );
});

test("logs, exec and figures are answered as on the node's API", async () => {
  await using scope = new TaskScope();
  const { path } = await start(scope, new FakePods(pod("web")));
  const log = await answer(path, "/containerLogs/default/nope/main");
  assert.deepEqual(log, { status: 404, text: 'pod "nope" does not exist' });
  assert.equal(
    (await answer(path, "/exec/default/web/main?command=sh&output=1", "POST")).text,
    "Upgrade request required",
  );
  assert.match((await answer(path, "/stats/summary")).text, /no runtime yet/);
  const upgraded = async (where: string): Promise<string> => {
    const socket = connect(path);
    socket.write(`POST ${where} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n`);
    let text = "";
    for await (const chunk of socket) text += String(chunk);
    return text;
  };
  assert.match(
    await upgraded("/exec/default/web/none?command=sh&output=1"),
    /^HTTP\/1\.1 500 [\s\S]*container not found/,
  );
  assert.equal(await upgraded("/pods"), "");
});

test("a uid is preferred to a name, a full name to a short one", () => {
  const odd = { metadata: { name: "uid-default-web", namespace: "x", uid: "u2" } };
  assert.deepEqual(findPod([odd, pod("web")], "uid-default-web"), {
    found: "one",
    pod: pod("web"),
    uid: "uid-default-web",
  });
});

test("what nodelet doctor found is taken once it makes sense", async () => {
  await using scope = new TaskScope();
  const { path, examined } = await start(scope, new FakePods());
  const at = "1970-01-01T00:00:07.000Z";
  assert.equal((await answer(path, "/doctor")).status, 405);
  for (const body of [
    "",
    "null",
    JSON.stringify({ at: "noon", summary: { fail: 1 } }),
    JSON.stringify({ at }),
    JSON.stringify({ at, summary: { fail: -1 } }),
    JSON.stringify({ at, summary: { 'x"} 1': 1 } }),
    JSON.stringify({ at, summary: Object.fromEntries(Array.from("abcdefghijklmnopq", (name) => [name, 1])) }),
    " ".repeat(5_000),
  ]) {
    assert.equal((await answer(path, "/doctor", "PUT", body)).status, 400, body.slice(0, 80));
  }
  assert.deepEqual(examined, []);
  assert.equal(
    (await answer(path, "/doctor", "PUT", JSON.stringify({ at, summary: { fail: 2, "n/a": 0 } }))).status,
    200,
  );
  assert.deepEqual(examined, [
    {
      atMs: 7_000,
      counts: new Map([
        ["fail", 2],
        ["n/a", 0],
      ]),
    },
  ]);
});

test("/healthz, /configz", async () => {
  await using scope = new TaskScope();
  const { path, health } = await start(scope, new FakePods());
  assert.deepEqual(await answer(path, "/healthz"), { status: 200, text: "ok" });
  health.report("runtime", { state: "waiting", reason: "no socket" });
  assert.deepEqual(await answer(path, "/healthz"), { status: 200, text: "ok" });
  assert.match((await answer(path, "/healthz?verbose")).text, /\[~\]runtime waiting for 0s: no socket/);
  health.report("runtime", { state: "failed", reason: "hangs" });
  const failed = await answer(path, "/healthz");
  assert.equal(failed.status, 500);
  assert.match(failed.text, /\[-\]runtime failed 0s ago: hangs/);
  assert.equal((await answer(path, "/healthz?exclude=runtime")).status, 200);
  assert.deepEqual(JSON.parse((await answer(path, "/configz")).text), { kubeletconfig: { port: 10250 } });
});

test("/plans/shutdown is what the agent would do", async () => {
  await using scope = new TaskScope();
  const { path } = await start(scope, new FakePods());
  assert.deepEqual(JSON.parse((await answer(path, "/plans/shutdown")).text), { totalSeconds: 30 });
});

test("/resources is who has what", async () => {
  await using scope = new TaskScope();
  const { path } = await start(scope, new FakePods());
  assert.deepEqual(JSON.parse((await answer(path, "/resources")).text), { nodes: [] });
});

for (const [method, body, status, verbosity] of [
  ["PUT", "4", 200, 4],
  ["PUT", " 6\n", 200, 6],
  ["PUT", "x", 400, 2],
  ["PUT", "-1", 400, 2],
  ["PUT", "1.5", 400, 2],
  ["PUT", "", 400, 2],
  ["PUT", "99999999999", 400, 2],
  ["PUT", "1".repeat(100), 400, 2],
  ["GET", "", 406, 2],
] as const) {
  test(`${method} /debug/flags/v ${JSON.stringify(body.slice(0, 12))}: ${status}`, async () => {
    await using scope = new TaskScope();
    const { path, logVerbosity } = await start(scope, new FakePods());
    const { status: found, text } = await answer(path, "/debug/flags/v", method, body);
    assert.equal(found, status);
    assert.equal(logVerbosity.verbosity, verbosity);
    if (status === 200) assert.equal(text, `successfully set klog.logging.verbosity to ${verbosity}`);
  });
}

for (const [method, path, status] of [
  ["POST", "/pods", 405],
  ["GET", "/nowhere", 404],
  ["GET", "//", 404],
] as const) {
  test(`${method} ${path} is answered with ${status}`, async () => {
    await using scope = new TaskScope();
    const { path: socket } = await start(scope, new FakePods());
    assert.equal((await answer(socket, path, method)).status, status);
  });
}

test("a watch begins with every pod, follows changes, and ends with its client", async () => {
  await using scope = new TaskScope();
  const views = new FakePods(pod("a"), pod("b"));
  const { path } = await start(scope, views);
  const response = await ask(path, "/pods?watch=1");
  const lines = createInterface({ input: response })[Symbol.asyncIterator]();
  const next = async () => {
    const { type, object } = JSON.parse((await lines.next()).value) as PodViewChange;
    return `${type} ${object.metadata?.name} ${object.status?.phase}`;
  };
  assert.equal(await next(), "ADDED a Running");
  assert.equal(await next(), "ADDED b Running");
  views.set(pod("a", "default", "Pending"));
  views.set(pod("c"));
  views.delete(pod("b"));
  assert.equal(await next(), "MODIFIED a Pending");
  assert.equal(await next(), "ADDED c Running");
  assert.equal(await next(), "DELETED b Running");
  response.destroy();
  while (views.listeners > 0) await settle(1);
});

test("stopping the server ends its watches", async () => {
  await using scope = new TaskScope();
  const views = new FakePods(pod("a"));
  const { path } = await start(scope, views);
  const response = await ask(path, "/pods?watch=1");
  const closed = new Promise((resolve) => response.on("close", resolve));
  response.on("error", () => {}).resume();
  await scope.stop();
  await closed;
  assert.equal(views.listeners, 0);
});

test("a client that does not read costs one waiting line per pod, and catches up", async () => {
  await using scope = new TaskScope();
  const views = new FakePods();
  const { path } = await start(scope, views);
  const response = await ask(path, "/pods?watch=true");
  while (views.listeners === 0) await settle(1);
  const padding = "x".repeat(100_000);
  for (let version = 0; version <= 200; version++) {
    views.set({
      ...pod("a"),
      metadata: { ...pod("a").metadata, resourceVersion: String(version), generateName: padding },
    });
    await settle(1);
  }
  const versions: number[] = [];
  for await (const line of createInterface({ input: response })) {
    versions.push(Number((JSON.parse(line) as PodViewChange).object.metadata?.resourceVersion));
    if (versions.at(-1) === 200) break;
  }
  assert.equal(versions[0], 0);
  assert.ok(versions.length < 150, `${versions.length} lines were kept for a client that did not read`);
  response.destroy();
});

for (const { changes, sent } of [
  { changes: ["MODIFIED 1", "MODIFIED 2"], sent: ["MODIFIED 2"] },
  { changes: ["ADDED 1", "MODIFIED 2"], sent: ["ADDED 2"] },
  { changes: ["ADDED 1", "DELETED 2"], sent: [] },
  { changes: ["MODIFIED 1", "DELETED 2"], sent: ["DELETED 2"] },
  { changes: ["DELETED 1", "ADDED 2"], sent: ["MODIFIED 2"] },
] as const) {
  test(`${changes.join(", ")} of one pod merge to ${sent.join() || "nothing"}`, () => {
    const waiting = new WaitingChanges();
    for (const change of changes) {
      const [type, resourceVersion] = change.split(" ") as [PodViewChange["type"], string];
      waiting.add({ type, object: { metadata: { uid: "u", resourceVersion } } });
    }
    const left: string[] = [];
    for (let next = waiting.take(); next !== undefined; next = waiting.take()) {
      left.push(`${next.type} ${next.object.metadata?.resourceVersion}`);
    }
    assert.deepEqual(left, sent);
  });
}

test("a socket left by a killed agent is replaced", async () => {
  const path = join(directory, "left.sock");
  const script = `require("net").createServer().listen(${JSON.stringify(path)}, () => console.log("up"))`;
  const child = spawn(process.execPath, ["-e", script]);
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "exit");
  assert.equal(existsSync(path), true);
  await using scope = new TaskScope();
  await start(scope, new FakePods(), path);
  assert.equal((await answer(path, "/healthz")).text, "ok");
});

test("a socket that answers, a file in its place, and a path too long are refused", async () => {
  await using scope = new TaskScope();
  const { path } = await start(scope, new FakePods());
  await assert.rejects(start(scope, new FakePods(), path), /Another agent listens on ".*"; stop it first/);
  assert.equal((await answer(path, "/healthz")).text, "ok");
  const file = join(directory, "file.sock");
  writeFileSync(file, "");
  await assert.rejects(start(scope, new FakePods(), file), /exists and is not a socket/);
  const long = `/${"x".repeat(107)}`;
  await assert.rejects(start(scope, new FakePods(), long), /longer than the 107 bytes Linux allows; use a shorter/);
});

test("a manifest is planned from the body of a request, which has its bounds", async () => {
  await using scope = new TaskScope();
  const { path } = await start(scope, new FakePods());
  const said = async (where: string, method: string, body: string): Promise<string> => {
    const { status, text } = await answer(path, where, method, body);
    return `${status} ${text.trim()}`;
  };
  assert.equal(await said("/plans/apply?name=web.yaml", "POST", "kind: Pod"), '200 {"name":"web.yaml","bytes":9}');
  assert.match(await said("/plans/apply?name=web.yaml", "GET", ""), /^405 /);
  for (const name of ["", ".hidden", "..", "a/b", "x".repeat(300), "a%00b"]) {
    assert.match(
      await said(`/plans/apply?name=${name}`, "POST", "kind: Pod"),
      /^400 the name of a file is missing/,
      name,
    );
  }
  const large = await said("/plans/apply?name=web.yaml", "POST", " ".repeat(2 ** 20 + 1));
  assert.match(large, /^400 only manifests of at most 1 MiB/);
});
