import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { recordIo } from "../../../test/support/command-io.ts";
import { completeCommand } from "./completion-command.ts";
import { exitCodeOf } from "./exit-code.ts";
import type { Command } from "./io.ts";
import { blameCommand, whyCommand } from "./ledger-command.ts";
import { logsCommand } from "./logs-command.ts";
import { podsCommand } from "./pods-command.ts";

const hostile = "\x1b[2J\u202e\u{e0041}gnp.exe\r\nFAKE: all is well";
const pod = {
  metadata: { name: "web", namespace: "shop", uid: "u1", annotations: {} as Record<string, string> },
  spec: { containers: [{ name: "main" }, { name: "proxy" }] },
  status: {
    phase: "Pending",
    containerStatuses: [
      { name: "main", ready: false, restartCount: 2, state: { waiting: { reason: hostile, message: hostile } } },
    ],
  },
};
const blocker = { reason: "ImagePullBackOff", message: hostile, since: 60_000, nextTryAt: 190_000 };
const asked: string[] = [];
let rootDir = "";

const server = createServer((request, response) => {
  const url = new URL(request.url ?? "", "http://localhost");
  asked.push(`${url.pathname}${url.search}`);
  const ref = url.searchParams.get("pod");
  if (ref !== null && ref !== "web" && ref !== "shop/web")
    return void response.writeHead(404).end(`there is no pod "${ref}" on this node\n`);
  const send = (value: unknown): void => void response.end(JSON.stringify(value));
  switch (url.pathname) {
    case "/pods":
      if (!url.searchParams.has("watch")) return send({ items: [pod] });
      for (const type of ["ADDED", "DELETED"]) response.write(`${JSON.stringify({ type, object: pod })}\n`);
      return void response.end();
    case "/ledger":
      return send({ pod: pod.metadata, ledger: { entries: [], dropped: 0, blocker }, now: 180_000 });
    case "/waiting": {
      const { metadata } = pod;
      const { waitingFor } = { waitingFor: blocker };
      return send({ pods: [{ ...metadata, phase: "Pending", waitingFor }], now: 180_000 });
    }
    case "/containerLogs/shop/web/main":
    case "/containerLogs/shop/web/proxy":
      return void response.end(Buffer.concat([Buffer.from(`one\n${hostile}\n`), Buffer.from([0xff, 0x0a])]));
    default:
      return void response.writeHead(404).end("404 page not found\n");
  }
});
before(async () => {
  rootDir = await mkdtemp(join(tmpdir(), "nodelet-pods-"));
  await new Promise<void>((resolve) => server.listen(join(rootDir, "nodelet.sock"), resolve));
});
after(async () => {
  server.close();
  await rm(rootDir, { recursive: true });
});

async function run(command: Command, words: readonly string[], isTTY = false) {
  const recorded = recordIo("/");
  asked.length = 0;
  const code = await command([...words, `--root-dir=${rootDir}`], { ...recorded.io, isTTY });
  return { code, out: recorded.stdout(), err: recorded.stderr() };
}

const shownHostile = "^[[2J<U+202E><U+E0041>gnp.exe^M^JFAKE: all is well";

test("why without a pod says all that waits", async () => {
  const { code, out } = await run(whyCommand, []);
  assert.equal(code, 0);
  assert.equal(
    out,
    "POD       PHASE    WAITING FOR       SINCE  NEXT TRY  MESSAGE\n" +
      `shop/web  Pending  ImagePullBackOff  2m0s   in 10s    ${shownHostile}\n`,
  );
});

for (const { command, words, kind } of [
  { command: whyCommand, words: [], kind: "WaitingList" },
  { command: whyCommand, words: ["web"], kind: "PodLedger" },
  { command: blameCommand, words: ["web"], kind: "PodLedger" },
  { command: podsCommand, words: [], kind: "PodList" },
  { command: podsCommand, words: ["web"], kind: "PodList" },
]) {
  test(`${kind} as JSON, with nothing in it that a terminal obeys`, async () => {
    for (const wish of [["-o", "json"], ["--json"]]) {
      const { code, out } = await run(command, [...words, ...wish]);
      assert.equal(code, 0);
      const answer = JSON.parse(out);
      assert.deepEqual([answer.apiVersion, answer.kind], ["nodelet.dev/v1", kind]);
      assert.ok(!out.includes("\x1b") && !out.includes("\u202e"));
    }
  });
}

test("pods as YAML say the same as JSON, with nothing in it that a terminal obeys", async () => {
  const [yaml, json] = [await run(podsCommand, ["-o", "yaml"]), await run(podsCommand, ["-o", "json"])];
  assert.deepEqual([yaml.code, yaml.err], [0, ""]);
  assert.match(yaml.out, /^apiVersion: nodelet\.dev\/v1\nkind: PodList\nitems:\n/);
  assert.deepEqual(parse(yaml.out), JSON.parse(json.out));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about.
  assert.doesNotMatch(yaml.out, /[\u001b\u202e\r\u{e0041}]/u);
});

test("pods -w as YAML: each change is a document of its own", async () => {
  const { out } = await run(podsCommand, ["-w", "-o", "yaml"]);
  const said = parseAllDocuments(out).map((document) => document.toJS());
  assert.deepEqual(
    said.map(({ kind, type, item }) => [kind, type, item.name]),
    [
      ["PodChange", "ADDED", "web"],
      ["PodChange", "DELETED", "web"],
    ],
  );
});

for (const { command, words, shows } of [
  { command: whyCommand, words: ["web"], shows: shownHostile },
  { command: podsCommand, words: [], shows: "  main" },
  { command: podsCommand, words: ["web"], shows: shownHostile },
]) {
  test(`hostile text in "${command === whyCommand ? "why" : "pods"} ${words}" is shown, not obeyed`, async () => {
    for (const isTTY of [true, false]) {
      const { out } = await run(command, words, isTTY);
      assert.ok(isTTY || out.includes(shows), out);
      assert.ok(!out.includes("\x1b") && !out.includes("\u202e") && !out.includes("\r"), out);
      assert.ok(!out.includes("\nFAKE"), out);
    }
  });
}

test("a pod that is not there is said in one sentence", async () => {
  for (const command of [whyCommand, blameCommand, podsCommand, logsCommand]) {
    const { code, out, err } = await run(command, ["wbe"]);
    assert.deepEqual([code, out], [1, ""]);
    assert.match(err, /^nodelet \w+: there is no pod "wbe" on this node\n$/);
  }
});

test("logs: bytes for pipes, visible text for people, the wishes as the agent knows them", async () => {
  const piped = await run(logsCommand, ["web", "-f", "-p", "--tail", "5", "--since", "90", "--timestamps"]);
  assert.equal(
    asked[1],
    "/containerLogs/shop/web/main?follow=true&previous=true&timestamps=true&tailLines=5&sinceSeconds=90",
  );
  assert.equal(piped.out, `one\n${hostile}\n\ufffd\n`);
  assert.equal(piped.err, "nodelet: container main of main, proxy; choose another with -c\n");
  const seen = await run(logsCommand, ["web", "-c", "proxy", "--since=100ms"], true);
  assert.equal(asked[1], "/containerLogs/shop/web/proxy?sinceSeconds=1");
  assert.equal(seen.out, "one\n^[[2J<U+202E><U+E0041>gnp.exe\nFAKE: all is well\n\ufffd\n");
  assert.equal(seen.err, "");
  const raw = await run(logsCommand, ["web", "-c", "proxy", "--raw"], true);
  assert.ok(raw.out.includes("\x1b[2J"));
});

test("logs of all containers, with their names; as JSON, one object for each line", async () => {
  const all = await run(logsCommand, [
    "web",
    "--all-containers",
    "--prefix",
    "--since-time",
    "2026-11-17T10:00:00+01:00",
  ]);
  const since = "?sinceTime=2026-11-17T09%3A00%3A00.000Z";
  assert.deepEqual(asked.slice(1), [`/containerLogs/shop/web/main${since}`, `/containerLogs/shop/web/proxy${since}`]);
  assert.match(all.out, /^\[pod\/web\/main\] one\n/);
  assert.match(all.out, /\n\[pod\/web\/proxy\] one\n/);
  const { out } = await run(logsCommand, ["web", "-c", "proxy", "-o", "json"], true);
  assert.equal(asked[1], "/containerLogs/shop/web/proxy?timestamps=true");
  assert.ok(!out.includes("\x1b") && !out.includes("\u202e"));
  const [first] = out.split("\n");
  assert.deepEqual(JSON.parse(first ?? ""), {
    ...{ apiVersion: "nodelet.dev/v1", kind: "LogLine" },
    ...{ namespace: "shop", pod: "web", container: "proxy", message: "one" },
  });
  for (const words of [
    ["--since", "1", "--since-time", "2026-11-17"],
    ["--since-time", "noon"],
    ["-c", "main", "--all-containers"],
  ]) {
    assert.equal((await run(logsCommand, ["web", ...words])).code, 2, words.join(" "));
  }
});

test("a namespace chooses pods: in lists, and for a pod that is named", async () => {
  for (const command of [podsCommand, whyCommand]) {
    assert.match((await run(command, ["-n", "shop"])).out, /shop\/web/);
    assert.doesNotMatch((await run(command, ["-n", "other"])).out, /shop\/web/);
  }
  await run(logsCommand, ["web", "-n", "shop"]);
  assert.equal(asked[0], "/pods?pod=shop%2Fweb");
  const both = await run(logsCommand, ["shop/web", "-n", "other"]);
  assert.equal(both.code, 2);
  assert.match(both.err, /shop\/web is not in the namespace other/);
});

test("logs: the container that the pod names as its default; one that is not there is refused", async () => {
  pod.metadata.annotations = { "kubectl.kubernetes.io/default-container": "proxy" };
  const { err } = await run(logsCommand, ["web"]);
  assert.equal(asked[1], "/containerLogs/shop/web/proxy");
  assert.equal(err, "");
  pod.metadata.annotations = {};
  const refused = await run(logsCommand, ["web", "-c", "sidecar"]);
  assert.equal(refused.code, 2);
  assert.match(refused.err, /pod shop\/web has no container sidecar, but main, proxy/);
});

test("without an agent, commands say so, and the completion says nothing", async () => {
  const recorded = recordIo("/");
  assert.equal(await podsCommand(["--root-dir=/nowhere"], recorded.io), 1);
  assert.match(recorded.stderr(), /no agent answers at \/nowhere\/nodelet\.sock; is it running\?/);
  const silent = recordIo("/");
  assert.equal(await completeCommand(["--", "nodelet why --root-dir=/nowhere "], silent.io), 0);
  assert.deepEqual([silent.stdout(), silent.stderr()], ["", ""]);
});

test("completion asks the running agent for pods and containers", async () => {
  for (const { line, says } of [
    { line: `nodelet logs --root-dir=${"ROOT"} `, says: "web\n" },
    { line: `nodelet logs --root-dir=${"ROOT"} web -c `, says: "main\nproxy\n" },
    { line: "nodelet up --manifests ", says: ":directories\n" },
  ]) {
    const { io, stdout } = recordIo("/");
    assert.equal(await completeCommand(["--", line.replace("ROOT", rootDir)], io), 0);
    assert.equal(stdout(), says);
  }
});

for (const { text, code } of [
  { text: '{"status":"Success"}', code: 0 },
  { text: '{"status":"Failure","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}', code: 3 },
]) {
  test(`a command that ended with ${code}`, () => assert.equal(exitCodeOf(text), code));
}

for (const { text, says } of [
  { text: "", says: /cut before it ended/ },
  { text: '{"status":"Failure","message":"no such file"}', says: /no such file/ },
  {
    text: '{"status":"Failure","message":"odd","details":{"causes":[{"reason":"ExitCode","message":"x"}]}}',
    says: /odd/,
  },
  { text: "rubbish", says: /rubbish/ },
  { text: "null", says: /null/ },
]) {
  test(`a command that could not be run: ${says}`, () => assert.throws(() => exitCodeOf(text), says));
}
