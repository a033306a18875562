import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { after, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { HungMount } from "../../../../test/support/hung-mount.ts";
import { TestServer } from "../../../../test/support/node-api.ts";
import { until } from "../../../../test/support/until.ts";
import { systemClock, unlessAborted } from "../../../ground/base/index.ts";
import { journalArguments, logQuery } from "./log-query.ts";
import { parseLogQuery } from "./log-query-options.ts";
import type { ApiCall } from "./router.ts";
import { parseRange, systemLogsService } from "./system-logs.ts";

const directory = mkdtempSync(join(tmpdir(), "nodelet-syslogs-"));
after(() => rmSync(directory, { recursive: true, force: true }));
const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const root = join(directory, "log");
mkdirSync(join(root, "pods", "a b"), { recursive: true });
writeFileSync(join(root, "syslog"), "0123456789");
writeFileSync(join(root, "empty"), "");
writeFileSync(join(root, "pods", "a b", "0.log"), "from a pod\n");
writeFileSync(join(root, "<x>&.log"), "odd name");
writeFileSync(join(directory, "secret"), "secret");
symlinkSync(join(directory, "secret"), join(root, "out"));
symlinkSync("/etc", join(root, "etc"));
symlinkSync(join(root, "pods", "a b", "0.log"), join(root, "in"));
spawnSync("mkfifo", [join(root, "pipe")]);
mkdirSync(join(directory, "log-beside"));
writeFileSync(join(directory, "log-beside", "x"), "beside");
symlinkSync(join(directory, "log-beside"), join(root, "beside"));

/** A journal that knows one unit and prints its arguments. */
const journalctl = join(directory, "journalctl");
writeFileSync(journalctl, '#!/bin/sh\n[ "$1" = --field ] && echo kubelet.service && exit\necho "journal: $*"\n');
chmodSync(journalctl, 0o755);

for (const [path, status, text, headers = {}] of [
  ["/logs/syslog", 200, "0123456789"],
  ["/logs/empty", 200, ""],
  ["/logs/pods/a%20b/0.log", 200, "from a pod\n"],
  ["/logs/in", 200, "from a pod\n"],
  ["/logs/out", 404, "404 page not found\n"],
  ["/logs/etc/passwd", 404, "404 page not found\n"],
  ["/logs/etc/", 404, "404 page not found\n"],
  ["/logs/beside/x", 404, "404 page not found\n"],
  ["/logs/pipe", 404, "404 page not found\n"],
  ["/logs/../etc/passwd", 301, undefined],
  ["/logs/..%2f..%2fetc/passwd", 400, undefined],
  ["/logs/pods", 301, ""],
  ["/logs/syslog/", 301, undefined],
  ["/logs/syslog", 206, "234", { Range: "bytes=2-4" }],
  ["/logs/syslog", 206, "89", { Range: "bytes=-2" }],
  ["/logs/syslog", 206, "789", { Range: "bytes=7-" }],
  ["/logs/syslog", 416, "invalid range: failed to overlap\n", { Range: "bytes=10-" }],
  ["/logs/syslog", 304, "", { "If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT" }],
] as const) {
  test(`GET ${path} ${JSON.stringify(headers)} gives ${status}`, async () => {
    await using server = await TestServer.start([systemLogsService(root, undefined)]);
    const answer = await server.ask(path, { headers });
    assert.equal(answer.status, status, answer.text);
    if (text !== undefined) assert.equal(answer.text, text);
  });
}

test("a directory is listed, with odd names made harmless", async () => {
  await using server = await TestServer.start([systemLogsService(root, undefined)]);
  const { text, headers } = await server.ask("/logs/");
  assert.equal(headers["content-type"], "text/html; charset=utf-8");
  assert.match(text, /<a href="%3Cx%3E&.log">&lt;x&gt;&amp;.log<\/a>\n/);
  assert.match(text, /<a href="pods\/">pods\/<\/a>\n/);
  assert.equal((await server.ask("/logs/pods")).headers.location, "pods/");
  assert.equal((await server.ask("/logs/index.html")).headers.location, "./");
});

test("a long list is written as fast as it is read, and no faster", async (t) => {
  const many = join(root, "many");
  mkdirSync(many);
  t.after(() => rmSync(many, { recursive: true }));
  for (let index = 0; index < 3_000; index++) writeFileSync(join(many, `${"n".repeat(200)}-${index}`), "");
  const service = systemLogsService(root, undefined);
  assert.ok(service.type === "service");
  const route = service.routes[1];
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  let taken = 0;
  let takeMore = (): void => {};
  // A reader who has not asked for more yet.
  const socket = new Writable({
    highWaterMark: 1,
    write: (piece: Buffer, _encoding, done) => {
      taken += piece.length;
      takeMore = done;
    },
  });
  response.assignSocket(socket as Socket);
  socket.on("drain", () => response.emit("drain"));
  const request = new IncomingMessage(new Socket());
  const sent = route?.handle({ request, response, params: { path: "many/" } } as unknown as ApiCall);
  await until("the reader is waited for", () => taken > 0 && response.writableNeedDrain);
  const waiting = response.writableLength + socket.writableLength;
  assert.ok(waiting < 700_000, `${waiting} bytes wait for their reader`);
  const reading = setInterval(() => {
    const more = takeMore;
    takeMore = () => {};
    more();
  }, 1);
  await sent;
  clearInterval(reading);
});

test("what is mounted below and does not answer is refused, and holds no thread", needsRoot, async () => {
  const mounted = join(root, "server");
  mkdirSync(mounted);
  symlinkSync(join(mounted, "deep"), join(root, "to-server"));
  await using hung = await HungMount.at(mounted);
  await using server = await TestServer.start([systemLogsService(root, undefined)]);
  for (const path of ["/logs/server/", "/logs/server/x", "/logs/to-server/y"]) {
    const answer = await unlessAborted(server.ask(path), AbortSignal.timeout(20_000));
    assert.equal(answer.status, 503, path);
    assert.match(answer.text, new RegExp(`mounted at ${hung.path} may not answer`));
  }
  assert.equal((await server.ask("/logs/")).status, 200);
});

test("names are bytes, in lists and in paths", async () => {
  const odd = Buffer.concat([Buffer.from(`${root}/caf`), Buffer.from([0xe9]), Buffer.from("?:\u00fc.log")]);
  writeFileSync(odd, "old letters");
  try {
    await using server = await TestServer.start([systemLogsService(root, undefined)]);
    const href = /<a href="([^"]*caf[^"]*)">/.exec((await server.ask("/logs/")).text)?.[1];
    assert.equal(href, "./caf%E9%3F:%C3%BC.log");
    assert.equal((await server.ask(`/logs/${href.slice(2)}`)).text, "old letters");
    assert.equal((await server.ask(`/logs/${href.slice(2)}/`)).status, 301);
    assert.equal((await server.ask(`/logs//${href.slice(2)}`)).headers.location, "/logs/caf%E9%3F%3A%C3%BC.log");
  } finally {
    unlinkSync(odd);
  }
});

test("nothing but files and directories is ever opened, wherever a link leads", async () => {
  const fifo = join(directory, "fifo");
  const marker = join(directory, "was-opened");
  spawnSync("mkfifo", [fifo]);
  symlinkSync(fifo, join(root, "to-fifo"));
  // Opening a pipe for writing waits until somebody opens it for reading.
  const writer = spawn("sh", ["-c", 'echo > "$1"; touch "$2"', "sh", fifo, marker]);
  const inside = spawn("sh", ["-c", 'echo > "$1"; touch "$2"', "sh", join(root, "pipe"), marker]);
  try {
    await using server = await TestServer.start([
      systemLogsService(root, logQuery({ clock: systemClock, root, journalctl })),
    ]);
    for (let round = 0; round < 20; round++) {
      assert.equal((await server.ask("/logs/to-fifo")).status, 404);
      assert.equal((await server.ask("/logs/pipe")).status, 404);
      assert.equal((await server.ask("/logs/?query=/pipe")).status, 406);
    }
    assert.equal(existsSync(marker), false);
  } finally {
    writer.kill("SIGKILL");
    inside.kill("SIGKILL");
    unlinkSync(join(root, "to-fifo"));
  }
});

test("a client that leaves at any moment ends nothing but its own query", async () => {
  const answer = logQuery({ clock: systemClock, root, journalctl });
  const problems: unknown[] = [];
  const onProblem = (error: unknown): void => void problems.push(error);
  process.on("uncaughtException", onProblem);
  try {
    for (const query of ["query=/syslog", "query=syslog", "query=kubelet"]) {
      for (let moment = 0; moment < 30; moment++) {
        const request = new IncomingMessage(new Socket());
        if (moment % 2 === 0) request.headers["accept-encoding"] = "gzip";
        const response = new ServerResponse(request);
        response.assignSocket(new PassThrough().resume() as unknown as Socket);
        const call = {
          request,
          response,
          path: "/logs/",
          query: new URLSearchParams(query),
          params: {},
          upgrade: undefined,
        };
        const answered = answer(call);
        for (let turn = 0; turn < moment; turn++) await new Promise((resolve) => setImmediate(resolve));
        response.destroy();
        await answered;
      }
    }
    await systemClock.sleep(20, new AbortController().signal);
  } finally {
    process.off("uncaughtException", onProblem);
  }
  assert.deepEqual(problems, []);
});

for (const [header, size, expected] of [
  [undefined, 10, undefined],
  ["bytes=0-0", 10, { start: 0, end: 1 }],
  ["bytes=5-99", 10, { start: 5, end: 10 }],
  ["bytes=-99", 10, { start: 0, end: 10 }],
  ["bytes=-0", 10, "unsatisfiable"],
  ["bytes=0-", 0, "unsatisfiable"],
  ["bytes=4-2", 10, undefined],
  ["bytes=-", 10, undefined],
  ["bytes=0-1,3-4", 10, undefined],
  ["lines=1-2", 10, undefined],
] as const) {
  test(`range ${header} of ${size}`, () => assert.deepEqual(parseRange(header, size), expected));
}

for (const [query, status, text] of [
  ["query=kubelet", 200, "journal: --utc --no-pager --output=short-precise --unit=kubelet\n"],
  ["query=kubelet&tailLines=5", 200, /--pager-end --lines=5 --unit=kubelet\n$/],
  ["query=syslog", 200, "0123456789"],
  ["query=nothing", 200, "log not found for nothing\n"],
  ["query=syslog&tailLines=2", 200, /^options present and query resolved to log files for \[syslog\]/],
  ["query=/syslog", 200, "0123456789"],
  ["query=pods/a b/0.log", 200, "from a pod\n"],
  ["query=/out", 406, /not found/],
  ["query=/etc/passwd", 406, /not found/],
  ["query=../secret", 406, /inside the log directory/],
  ["query=/syslog&tailLines=1", 406, /cannot specify file with options/],
  ["query=/syslog&query=/empty", 406, /more than one file/],
  ["query=kubelet&query=/syslog", 406, /cannot be combined/],
  ["query=a&query=b&query=c&query=d&query=e", 406, /at most 4/],
  [`query=${"a".repeat(257)}`, 406, /longer than 256/],
  ["query=a;reboot", 406, /unsupported characters/],
  ["query=$(reboot)", 406, /unsupported characters/],
  ["tailLines=5", 406, /Required value/],
  ["query=kubelet&tailLines=100001", 406, /tailLines/],
  ["query=kubelet&tailLines=x", 400, /not a whole number/],
  ["query=kubelet&boot=1", 406, /boot/],
  ["query=kubelet&sinceTime=yesterday", 400, /RFC 3339/],
  ["query=kubelet&sinceTime=2026-01-02T00:00:00Z&untilTime=2026-01-01T00:00:00Z", 406, /untilTime/],
  ["query=kubelet&pattern=(", 406, /regular expression/],
] as const) {
  test(`log query ${query} gives ${status}`, async () => {
    const answer = logQuery({ clock: systemClock, root, journalctl });
    await using server = await TestServer.start([systemLogsService(root, answer)]);
    const { status: got, text: body } = await server.ask(`/logs/?${encodeURI(query).replaceAll("$", "%24")}`);
    assert.equal(got, status, body);
    if (typeof text === "string") assert.equal(body, text);
    else assert.match(body, text);
  });
}

test("a log query names no path, and is compressed for those who ask for exactly that", async () => {
  const answer = logQuery({ clock: systemClock, root, journalctl });
  await using server = await TestServer.start([systemLogsService(root, answer)]);
  const refused = await server.ask("/logs/syslog?query=kubelet");
  assert.deepEqual([refused.status, refused.text], [406, "path not allowed in query mode"]);
  const packed = await server.ask("/logs/?query=syslog", { headers: { "Accept-Encoding": "gzip" } });
  assert.equal(packed.headers["content-encoding"], "gzip");
  assert.equal(gunzipSync(packed.bytes).toString(), "0123456789");
});

test("a missing journalctl leaves services to their files", async () => {
  const answer = logQuery({ clock: systemClock, root, journalctl: "/no/such/program" });
  await using server = await TestServer.start([systemLogsService(root, answer)]);
  assert.equal((await server.ask("/logs/?query=syslog")).text, "0123456789");
});

test("all options reach journalctl as words of their own", () => {
  const query = parseLogQuery(
    new URLSearchParams(
      "query=a&query=b&sinceTime=2026-01-02T03:04:05Z&untilTime=2026-01-02T05:04:05%2B01:00&boot=-1&pattern=x y",
    ),
  );
  assert.ok(query);
  assert.deepEqual(journalArguments(query), [
    "--utc",
    "--no-pager",
    "--output=short-precise",
    "--since=2026-01-02 03:04:05 UTC",
    "--until=2026-01-02 04:04:05 UTC",
    "--unit=a",
    "--unit=b",
    "--grep=x y",
    "--boot",
    "-1",
  ]);
});
