import assert from "node:assert/strict";
import { mkdir, rmdir, stat } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { ServedDashboard, ShownNode } from "../../../test/support/dashboard.ts";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { freePort } from "../../../test/support/free-port.ts";
import { testContainer, testPod } from "../../../test/support/pods.ts";
import { processorTime } from "../../../test/support/processor-time.ts";
import { until } from "../../../test/support/until.ts";
import { TaskScope, untilAborted } from "../../ground/base/index.ts";
import { Dashboard } from "./dashboard.ts";

test("a token that only root can read is good for one login, and the cookie for what follows", async () => {
  await using served = await ServedDashboard.start();
  assert.equal((await stat(served.tokenFile)).mode & 0o777, 0o600);
  assert.equal((await served.ask("api/state")).status, 401);
  const token = await served.token();
  const login = await served.logIn(token);
  assert.equal(login.status, 200);
  const [cookie = ""] = login.headers["set-cookie"] ?? [];
  assert.match(cookie, /^nodelet-\d+=[\w-]{43}; Path=\/dashboard\/; HttpOnly; SameSite=Strict$/);
  assert.equal((await served.ask("api/state")).status, 200);
  const known = served.cookie;
  served.cookie = "";
  assert.equal((await served.logIn(token)).status, 403, "the token was used already");
  assert.equal((await served.ask("api/state", { headers: { Cookie: `nodelet-${served.port}=x` } })).status, 401);
  // What listens on another port of this machine is shown the cookie by the browser, and never the key.
  assert.equal((await served.ask("api/state", { headers: { Cookie: known } })).status, 401);
});

test("sessions outlive the agent, but neither the boot nor the day", async () => {
  const clock = new FakeClock();
  const first = await ServedDashboard.start(new ShownNode<FakeClock>(clock));
  await first.logIn();
  await first.stop();
  const { cookie, key } = first;
  const session = { cookie: cookie.slice(cookie.indexOf("=") + 1), key };
  const { Sessions } = await import("./door/sessions.ts");
  const opened = async (bootId: string) => {
    const sessions = new Sessions({ clock, path: first.tokenFile, address: "a", bootId });
    await sessions.restore();
    return sessions.isKnown(session);
  };
  assert.equal(await opened("boot-1"), true);
  await clock.advance(13 * 3_600_000);
  assert.equal(await opened("boot-1"), false, "after a day");
  clock.setBack(13 * 3_600_000);
  await first.logIn().catch(() => undefined);
  assert.equal(await opened("boot-2"), false, "after a boot");
  await first[Symbol.asyncDispose]();
});

for (const { what, headers, status } of [
  { what: "its own name", headers: {}, status: 200 },
  { what: "localhost by a forwarded port", headers: { Host: "localhost:9999" }, status: 200 },
  { what: "a name that resolves to this machine", headers: { Host: "evil.example:4194" }, status: 403 },
  { what: "another address", headers: { Host: "10.0.0.1" }, status: 403 },
  { what: "a page of another site", headers: { Origin: "http://evil.example" }, status: 403 },
  { what: "a page of another port", headers: { Origin: "http://127.0.0.1:1" }, status: 403 },
  { what: "a script of another site", headers: { "Sec-Fetch-Site": "cross-site" }, status: 403 },
  {
    what: "a link on another site",
    headers: { "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document" },
    status: 200,
  },
] as const) {
  test(`a request from ${what} gets ${status}`, async () => {
    await using served = await ServedDashboard.start();
    assert.equal((await served.ask("", { headers })).status, status);
  });
}

test("every answer says what the browser may do with it", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const page = await served.ask("");
  const policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";
  for (const answer of [
    page,
    await served.ask("api/state"),
    await served.ask("api/nothing"),
    await served.ask("x.js"),
  ]) {
    assert.equal(answer.headers["content-security-policy"], policy);
    assert.equal(answer.headers["x-content-type-options"], "nosniff");
    assert.equal(answer.headers["referrer-policy"], "no-referrer");
    assert.equal(answer.headers["cross-origin-opener-policy"], "same-origin");
    assert.equal(answer.headers["cross-origin-resource-policy"], "same-origin");
    assert.equal(answer.headers["access-control-allow-origin"], undefined);
  }
  assert.equal(page.headers["cache-control"], "no-store");
  assert.equal((await served.ask("api/state")).headers["cache-control"], "no-store");
  const script = await served.ask("app-ABC.js");
  assert.deepEqual([script.text, script.headers["cache-control"]], ["script", "public, max-age=31536000, immutable"]);
  const packed = await served.ask("app-ABC.js", { headers: { "Accept-Encoding": "gzip" } });
  assert.equal(packed.headers["content-encoding"], "gzip");
});

test("nothing but the login is anything else than a GET, and no path leads out", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  for (const method of ["POST", "PUT", "DELETE", "PATCH"]) {
    assert.equal((await served.ask("api/state", { method })).status, 405, method);
  }
  assert.equal((await served.ask("api/login")).status, 405);
  for (const path of ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%00", "nodelet/dashboard.json", "__proto__"]) {
    assert.equal((await served.ask(path)).status, 404, path);
  }
  const form = { "Content-Type": "text/plain", Origin: `http://127.0.0.1:${served.port}` };
  assert.equal((await served.ask("api/login", { method: "POST", headers: form, body: "{}" })).status, 415);
});

/** What the stream has said so far. */
function heard(response: IncomingMessage): { text: string } {
  const all = { text: "" };
  response.setEncoding("utf8").on("data", (piece: string) => {
    all.text += piece;
  });
  return all;
}

const lastId = (text: string): string => [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? "";

test("viewers are told of changes, and who comes back is told what changed meanwhile", async () => {
  await using served = await ServedDashboard.start();
  const { node } = served;
  await served.logIn();
  node.put(testPod());
  const first = await served.open("api/live");
  const all = heard(first);
  await until("the pod is told", () => all.text.includes('["pod/uid-1",'));
  assert.match(all.text, /^event: begin\n/);
  // Another viewer stays, so that what happens is followed.
  const other = await served.open("api/live");
  other.resume();
  first.destroy();
  const id = lastId(all.text);
  node.put(testPod({}, { name: "other", uid: "uid-2" }));
  node.remove("uid-1");
  await node.clock.advance(100);
  const back = await served.open("api/live", { headers: { "Last-Event-ID": id } });
  const since = heard(back);
  await until("both changes are told", () => since.text.includes("uid-2") && since.text.includes('["pod/uid-1",null]'));
  assert.doesNotMatch(since.text, /event: begin/);
  const stranger = heard(await served.open("api/live", { headers: { "Last-Event-ID": "of-another-agent-7" } }));
  await until("all is told", () => stranger.text.includes("uid-2"));
  assert.match(stranger.text, /^event: begin\n/);
  assert.doesNotMatch(stranger.text, /uid-1/);
});

test("what a pod waits for is told when it changes", async () => {
  await using served = await ServedDashboard.start();
  const { node } = served;
  await served.logIn();
  node.put(testPod());
  const all = heard(await served.open("api/live"));
  await until("the pod is told", () => all.text.includes("uid-1"));
  node.ledger.block("uid-1" as never, { reason: "ImagePullBackOff", message: "no such image", nextTryAt: 1 });
  await node.clock.advance(50);
  await until("its wait is told", () => all.text.includes('"reason":"ImagePullBackOff"'));
});

test("while nobody looks there is no timer and no listener, and the charts go after five minutes", async () => {
  const node = new ShownNode();
  await using served = await ServedDashboard.start(node);
  assert.deepEqual([node.clock.pendingTimers, node.listeners.size, served.loaded], [0, 0, 0]);
  await served.logIn();
  const viewer = await served.open("api/live");
  viewer.resume();
  await until("somebody looks", () => node.listeners.size === 1 && node.clock.pendingTimers > 0);
  viewer.destroy();
  await until("nobody looks", () => node.listeners.size === 0);
  await settle();
  assert.equal(node.clock.pendingTimers, 1, "only that which forgets the charts");
  await node.clock.advance(5 * 60_000);
  assert.equal(node.clock.pendingTimers, 0);
});

test("the twenty-first viewer is told that there are too many", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const viewers = await Promise.all(Array.from({ length: 20 }, () => served.open("api/live")));
  for (const viewer of viewers) viewer.resume();
  const { status, text, headers } = await served.ask("api/live");
  assert.deepEqual([status, headers["retry-after"]], [503, "10"]);
  assert.match(text, /as many pages as may be/);
  viewers[0]?.destroy();
  await until("there is room again", async () => {
    const next = await served.open("api/live");
    next.resume();
    return next.statusCode === 200;
  });
});

test("who does not read costs no memory, and is told the last truth when it reads again", async () => {
  await using served = await ServedDashboard.start();
  const { node } = served;
  await served.logIn();
  const long = "x".repeat(1000);
  for (let count = 0; count < 300; count++) node.put(testPod({}, { name: `${long}-${count}`, uid: `uid-${count}` }));
  const slow = await served.open("api/live");
  slow.pause();
  const before = process.memoryUsage().external;
  for (let round = 0; round < 20; round++) {
    for (let count = 0; count < 300; count++) {
      node.put(testPod({}, { name: `${long}-${count}-${round}`, uid: `uid-${count}` }));
    }
    await node.clock.advance(50);
  }
  assert.ok(process.memoryUsage().external - before < 8 * 2 ** 20, "what is not read does not pile up");
  const all = heard(slow);
  slow.resume();
  await until("the last truth is told", () => all.text.includes("-299-19"));
  slow.destroy();
});

test("what is secret does not leave", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const pod = testPod(
    {
      containers: [
        {
          name: "main",
          image: "busybox",
          command: ["sh", "-c", "PGPASSWORD='hunter2' psql --api-key hunter2"],
          args: ["--db-password=hunter2", "--url=https://me:hunter2@example.org/", "--token", "hunter2", "--verbose"],
          env: [
            { name: "DB_PASSWORD", value: "hunter2" },
            { name: "API_KEY", value: "hunter2" },
            { name: "PASSWORD_OF_DB", value: "hunter2" },
            { name: "SIGNER", value: "-----BEGIN EC PRIVATE KEY-----\nhunter2\n-----END EC PRIVATE KEY-----" },
            { name: "FROM_SECRET", valueFrom: { secretKeyRef: { name: "db", key: "password" } } },
            { name: "SETTINGS", value: '{"inner":"{\\"password\\": \\"hunter2\\"}"}' },
            { name: "HINT", value: "use-eyJhbGciOiJIUzI1NiJ9.hunter2hunter2.hunter2 or eyJ-short.words.here" },
            { name: "PGPASS", value: "hunter2" },
            { name: "SIGNING_KEY_BASE64", value: "hunter2" },
            { name: "DATABASE", value: "server=db;user=me;pwd=hunter2;" },
            { name: "GITHUB", value: "ghp_hunter2hunter2" },
            { name: "TELL", value: "https://hooks.slack.com/services/T0/B0/hunter2" },
            { name: "COLOUR", value: "green" },
          ],
          livenessProbe: { httpGet: { port: 80, httpHeaders: [{ name: "X-Auth-Token", value: "hunter2" }] } },
        },
      ],
    },
    { annotations: { "kubectl.kubernetes.io/last-applied-configuration": '{"password":"hunter2"}', colour: "blue" } },
  );
  const message = 'Readiness probe failed: Get "http://10.0.0.7:80/health?api_key=hunter2&deep=1": connection refused';
  served.node.put({ ...pod, status: { phase: "Running", conditions: [{ type: "Ready", status: "False", message }] } });
  const yaml = await served.ask("api/pods/uid-1/yaml");
  assert.equal(yaml.status, 200);
  for (const { text } of [yaml, await served.ask("api/pods/uid-1"), await served.ask("api/state")]) {
    assert.doesNotMatch(text, /hunter2/);
  }
  assert.match(yaml.text, /name: FROM_SECRET/);
  assert.match(yaml.text, /value: green/);
  assert.match(yaml.text, /- --verbose/);
  assert.match(yaml.text, /colour: blue/);
  assert.match((await served.ask("api/pods/uid-1")).text, /health\?api_key=<hidden>&deep=1/);
  assert.match(yaml.text, /use-<hidden> or eyJ-short\.words\.here/);
  assert.equal((await served.ask("api/pods/nobody")).status, 404);
});

test("texts that are made to be slow to look through hold nobody up", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const manyOf = (text: string): string => text.repeat(Math.ceil(256_000 / text.length));
  const flag = `--${manyOf("passw")}!`;
  served.node.put(
    testPod(
      { containers: [{ ...testContainer("main"), args: [flag, "value", manyOf("token=\\")] }] },
      {
        annotations: {
          ...{ tokens: manyOf("eyJ-"), dotted: manyOf("eyJaaaaaaaa.") },
          ...{ asked: manyOf("?token&passw"), marked: manyOf("glpat-aaaaaaaa ") },
        },
      },
    ),
  );
  const took = await processorTime(async () => assert.equal((await served.ask("api/pods/uid-1/yaml")).status, 200));
  // The square of these lengths takes a minute.
  assert.ok(took < 5_000_000, `${took} us`);
});

test("a port that another program has is said, and stops nobody", async () => {
  await using served = await ServedDashboard.start();
  const { DashboardListener } = await import("./index.ts");
  const said: unknown[] = [];
  const log = { ...served.node.ports().log, warn: (...words: unknown[]) => said.push(words) };
  const listener = new DashboardListener(
    { host: "127.0.0.1", port: served.port },
    {
      clock: served.node.clock,
      log,
      tokenFile: "/nonexistent/x",
      bootId: "",
      dashboard: () => Promise.reject(new Error("never asked")),
    },
  );
  assert.equal(await listener.listen(), false);
  assert.match(JSON.stringify(said), /another program has the port/);
});

test("a disk that takes no token keeps nobody from their pods, and no session from its page", async () => {
  const { DashboardListener } = await import("./index.ts");
  await using served = await ServedDashboard.start();
  const { clock } = served.node;
  const directory = dirname(served.tokenFile);
  await served.logIn();
  // A directory where the file is to be written first: as a full disk has it.
  await mkdir(`${served.tokenFile}.tmp`);
  const [token, again] = [await served.token(), await served.token()];
  assert.equal((await served.logIn(token)).status, 200, "who comes while the disk is full is let in");
  assert.equal((await served.logIn(again)).status, 200, "as long as the file can't be renewed");
  const said: string[] = [];
  const log = { ...served.node.ports().log, warn: (text: string) => said.push(text) };
  const listener = new DashboardListener(
    { host: "127.0.0.1", port: await freePort() },
    { clock, log, tokenFile: join(directory, "dashboard.json"), bootId: "other", dashboard: () => Promise.reject() },
  );
  assert.equal(await listener.listen(), true);
  assert.deepEqual(said, ["Nobody can log in to the dashboard yet"]);
  const stop = new AbortController();
  const serving = listener.serve(stop.signal);
  await rmdir(`${served.tokenFile}.tmp`);
  await clock.advance(30_000);
  await until("a token is there", async () => (await served.token()) !== token);
  stop.abort();
  await serving;
});

test("who has left before the answer began is not kept", async () => {
  const node = new ShownNode();
  node.put(testPod());
  const scope = new TaskScope();
  const dashboard = new Dashboard(node.ports(), "/nonexistent", scope);
  let began = 0;
  node.copyLog = (_request, _sink, signal) => {
    began++;
    return untilAborted(signal);
  };
  let hasAnswered = false;
  const server = createServer((request, response) => {
    // The gate of the node's API asks others whether the viewer may.
    response.once("close", () => {
      const query = new URLSearchParams("follow");
      const call = { request, response, query };
      const answers = ["api/live", "api/logs/uid-1"].map((path) =>
        dashboard.answer({ ...call, path }, { type: "gate" }),
      );
      void Promise.all(answers).then(() => {
        hasAnswered = true;
      });
    });
    request.socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  const { port } = server.address() as AddressInfo;
  await assert.rejects(fetch(`http://127.0.0.1:${port}/`));
  await until("both are answered", () => hasAnswered);
  assert.deepEqual([node.listeners.size, node.clock.pendingTimers, began], [0, 0, 0]);
  server.close();
  await scope.stop();
});

// The charts are kept for some minutes.
for (const { path, timersLeft } of [
  { path: "api/live", timersLeft: 1 },
  { path: "api/logs/uid-1", timersLeft: 0 },
]) {
  test(`who takes nothing of ${path} for long makes room for others, whichever door it came by`, async () => {
    const node = new ShownNode();
    node.put(testPod());
    node.copyLog = (_request, _sink, signal) => untilAborted(signal);
    await using scope = new TaskScope();
    const dashboard = new Dashboard(node.ports(), "/nonexistent", scope, 100);
    const server = createServer((request, response) => {
      const query = new URLSearchParams("follow");
      void dashboard.answer({ request, response, path, query }, { type: "gate" });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
    const { port } = server.address() as AddressInfo;
    const viewer = connect(port, "127.0.0.1", () => viewer.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    await until("somebody looks", () => node.clock.pendingTimers > 0);
    const isOver = (): boolean => node.listeners.size === 0 && node.clock.pendingTimers === timersLeft;
    await until("nobody looks any more", isOver);
    viewer.destroy();
    server.close();
  });
}

test("many who look are one look, and who leaves is no error", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const { node } = served;
  let looks = 0;
  let go = (): void => {};
  const slow = new Promise<void>((resolve) => {
    go = resolve;
  });
  node.foresee = async () => {
    looks++;
    await slow;
    return { goes: [], stays: [], freedBytes: 0n, wantedBytes: 0n };
  };
  const left = new AbortController();
  const first = served.ask("api/images", { signal: left.signal });
  await until("somebody looks", () => looks === 1);
  const second = served.ask("api/images");
  left.abort();
  await assert.rejects(first);
  go();
  assert.equal((await second).status, 200);
  assert.equal((await served.ask("api/images")).status, 200);
  assert.equal(looks, 1);
  await node.clock.advance(1_000);
  await served.ask("api/images");
  assert.equal(looks, 2);
  assert.deepEqual(node.errors, []);
});

test("a disk that hangs holds up nothing else", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const { node } = served;
  let asked = 0;
  node.disk = () => {
    asked++;
    return new Promise<never>(() => {});
  };
  const all = heard(await served.open("api/live"));
  for (let round = 0; round < 20; round++) await node.clock.advance(1_000);
  await until("samples come", () => all.text.split("event: sample").length > 5);
  assert.equal(asked, 1, "it is not asked again while it hangs: each asking holds a thread");
});

test("cgroups of containers have their names, and no others have", async () => {
  const { MachineLook } = await import("./views/machine-view.ts");
  const node = new ShownNode();
  const id = "ab".repeat(32);
  const statuses = [{ name: "waits" }, { name: "web", containerID: `containerd://${id}` }];
  node.put({ ...testPod(), status: { phase: "Running", containerStatuses: statuses } } as never);
  const ports = node.ports();
  const details = () => ({ io: [], tasks: 1 }) as never;
  const children = (path: string) => (path === "/" ? [`cri-containerd-${id}.scope`, "system.slice"] : []);
  const look = new MachineLook({ ...ports, cgroups: { ...ports.cgroups, details, children } });
  const { cgroups } = await look.view(new AbortController().signal);
  assert.deepEqual(
    cgroups.map(({ container }) => container),
    [undefined, "web", undefined],
  );
});

test("a clock that is set back begins the charts anew", async () => {
  const { Series } = await import("./live/series.ts");
  const series = new Series(2, 3);
  for (const at of [10, 20, 30, 40]) series.push([at, at]);
  assert.deepEqual(
    series.rows().map(([at]) => at),
    [20, 30, 40],
  );
  series.push([15, 1]);
  series.push([16, 2]);
  assert.deepEqual(series.rows(), [
    [15, 1],
    [16, 2],
  ]);
});

test("strangers who say nothing keep nobody out", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const viewer = await served.open("api/live");
  viewer.resume();
  const idle = Array.from({ length: 110 }, () => connect(served.port, "127.0.0.1").on("error", () => {}));
  await until("they are there", () => idle.every(({ connecting }) => !connecting));
  assert.equal((await served.ask("api/state")).status, 200);
  assert.equal(viewer.destroyed, false, "who is logged in stays");
  for (const socket of idle) socket.destroy();
});

test("when the agent stops, viewers are let go", async () => {
  const served = await ServedDashboard.start();
  await served.logIn();
  const viewer = await served.open("api/live");
  viewer.resume();
  const closed = new Promise((resolve) => viewer.on("close", resolve));
  viewer.on("error", () => {});
  await served.stop();
  await closed;
  await served[Symbol.asyncDispose]();
});

test("logs come line by line, of all containers, and no line is longer than people read", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const { node } = served;
  node.put(testPod({ containers: [testContainer("a"), testContainer("b")] }));
  const seen: unknown[] = [];
  node.copyLog = async ({ container, previous, follow, tailLines, hasTimes }, sink) => {
    seen.push({ container, previous, follow, tailLines, hasTimes });
    if (container === "b") throw new Error("it never ran");
    await sink(Buffer.from("T1 one\nT2 tw"));
    await sink(Buffer.from("o\nT3 "));
    for (let count = 0; count < 64; count++) await sink(Buffer.from("x".repeat(16 * 1024)));
  };
  const { text } = await served.ask("api/logs/uid-1?tail=7&previous");
  const lines = text.split("\n").filter((line) => line !== "");
  assert.ok(lines.includes("! b: it never ran"));
  assert.ok(lines.includes("0 T1 one") && lines.includes("0 T2 two"));
  const long = lines.find((line) => line.startsWith("0 T3")) ?? "";
  assert.match(long, /x … \d+ more bytes in this line$/);
  assert.ok(long.length < 20_000);
  assert.deepEqual(seen[0], { container: "a", previous: true, follow: false, tailLines: 7, hasTimes: true });
  const whole = await served.ask("api/logs/uid-1?container=a&download");
  assert.equal(whole.headers["content-disposition"], 'attachment; filename="web-a.log"');
  assert.ok(whole.text.length > 2 ** 20);
  // As the container wrote it.
  assert.deepEqual(seen.at(-1), {
    ...{ container: "a", previous: false, follow: false },
    ...{ tailLines: undefined, hasTimes: false },
  });
});

test("the ninth log is told that there are too many", async () => {
  await using served = await ServedDashboard.start();
  await served.logIn();
  const { node } = served;
  node.put(testPod());
  node.copyLog = (_request, _sink, signal) => untilAborted(signal);
  const logs = await Promise.all(Array.from({ length: 8 }, () => served.open("api/logs/uid-1?follow")));
  assert.equal((await served.ask("api/logs/uid-1?follow")).status, 503);
  logs[0]?.destroy();
  await until("there is room again", async () => (await served.open("api/logs/uid-1?follow")).statusCode === 200);
});
