// What the doctor asks of a cluster beside the way to it, and what it tells: the cluster, and the agent.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { after, test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { until } from "../../../test/support/until.ts";
import { never } from "../../ground/base/index.ts";
import { examine } from "./examine.ts";
import type { DoctorReport } from "./finding.ts";
import { tellAgent } from "./output/tell-agent.ts";

const directory = mkdtempSync(join(tmpdir(), "nodelet-cluster-"));
after(() => rmSync(directory, { recursive: true, force: true }));

const machineId = "0123456789abcdef0123456789abcdef";
const root = join(directory, "root");
for (const [path, text] of Object.entries({
  "proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n",
  "proc/uptime": "100 100\n",
  "proc/sys/kernel/hostname": "node-1\n",
  "etc/machine-id": `${machineId}\n`,
})) {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

type Answer = (request: IncomingMessage, body: string) => { readonly status?: number; readonly body: object };

/** An API server of a few answers, and the kubeconfig of who asks it. */
async function serve(name: string, answer: Answer): Promise<AsyncDisposable & { readonly kubeconfig: string }> {
  const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    const { status = 200, body } = answer(request, await textOf(request));
    response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const kubeconfig = join(directory, name);
  const [cluster, user] = [
    { name: "k", cluster: { server: url } },
    { name: "u", user: {} },
  ];
  const context = { name: "c", context: { cluster: "k", user: "u" } };
  const config = { apiVersion: "v1", kind: "Config", "current-context": "c", contexts: [context] };
  writeFileSync(kubeconfig, JSON.stringify({ ...config, clusters: [cluster], users: [user] }));
  return {
    kubeconfig,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** By a clock that stands still: what is asked here is answered, however slow the machine is. */
async function look(
  only: readonly string[],
  kubeconfig: string,
  more: { readonly env?: Readonly<Record<string, string>>; readonly publishes?: boolean } = {},
): Promise<DoctorReport> {
  const where = {
    clock: new FakeClock(Date.UTC(2026, 10, 17)),
    env: {},
    cwd: "/",
    uid: 0,
    socket: join(directory, "none.sock"),
    withinMs: 60_000,
  };
  return await examine(
    { ...where, root, flags: [`--kubeconfig=${kubeconfig}`, "--hostname-override=node-1"], only, ...more },
    never,
  );
}

const node = (name: string, machineID: string) => ({ metadata: { name }, status: { nodeInfo: { machineID } } });

test("nodes that share this machine's id are found over all pages, by the credentials that are named", async () => {
  const asked: string[] = [];
  await using server = await serve("administrator", ({ url = "" }) => {
    asked.push(url);
    return url.includes("continue=")
      ? { body: { items: [node("node-3", machineId)] } }
      : { body: { metadata: { continue: "a/b" }, items: [node("node-1", machineId), node("node-2", "other")] } };
  });
  await using own = await serve("node", () => ({ status: 403, body: {} }));
  const forbidden = await look(["api.machine-id"], own.kubeconfig);
  assert.equal(forbidden.findings[0]?.state, "n/a", forbidden.findings[0]?.seen);
  const { findings } = await look(["api.machine-id"], own.kubeconfig, { env: { KUBECONFIG: server.kubeconfig } });
  assert.deepEqual([findings[0]?.state, findings[0]?.seen], ["fail", "node-3 has it too (1 of 2 other nodes)"]);
  assert.deepEqual(asked, ["/api/v1/nodes?limit=50", "/api/v1/nodes?limit=50&continue=a%2Fb"]);
});

test("what was found is written to the Node's conditions, where that is wanted; trouble with it is told", async () => {
  const patches: { readonly type: string | undefined; readonly body: string }[] = [];
  const before = { type: "KernelDeadlock", status: "Unknown", lastTransitionTime: "2026-01-01T00:00:00Z" };
  let status = 200;
  await using server = await serve("publishing", ({ method, url, headers }, body) => {
    if (method === "PATCH" && url === "/api/v1/nodes/node-1/status") {
      patches.push({ type: headers["content-type"], body });
      return { status, body: {} };
    }
    return { body: { status: { conditions: [before] } } };
  });
  const only = ["kernel-log.hung-tasks"];
  assert.equal((await look(only, server.kubeconfig)).nodeConditions, undefined);
  assert.equal(patches.length, 0);
  const { nodeConditions } = await look(only, server.kubeconfig, { publishes: true });
  // The made-up machine has no log of the kernel's.
  assert.deepEqual(nodeConditions, { written: [{ type: "KernelDeadlock", status: "Unknown" }] });
  assert.equal(patches[0]?.type, "application/strategic-merge-patch+json");
  const [condition] = JSON.parse(patches[0]?.body ?? "").status.conditions;
  assert.deepEqual([condition.reason, condition.lastTransitionTime], ["NotExamined", before.lastTransitionTime]);
  status = 403;
  const refused = await look(only, server.kubeconfig, { publishes: true });
  assert.deepEqual(refused.nodeConditions, { problem: "the API server answered with 403 to them" });
  const standAlone = await look(only, "", { publishes: true });
  assert.match(JSON.stringify(standAlone.nodeConditions), /there is no Node to write them to/);
});

test("the agent is told the figures; one that is older, gone or hangs is not waited for", async () => {
  const socket = join(directory, "agent.sock");
  const told: string[] = [];
  let hangs = false;
  const agent = createServer(async (request, response) => {
    told.push(`${request.method} ${request.url} ${await textOf(request)}`);
    if (!hangs) response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => agent.listen(socket, resolve));
  const summary = { fail: 1, unknown: 0, warn: 0, manual: 0, pass: 2, "n/a": 3 };
  const report = { at: "2026-11-17T00:00:00.000Z", summary, agent: { state: "running", socket } } as DoctorReport;
  const clock = new FakeClock();
  await tellAgent(report, clock, never);
  assert.deepEqual(told, [`PUT /doctor ${JSON.stringify({ at: report.at, summary })}`]);
  hangs = true;
  const telling = tellAgent(report, clock, never);
  await until("it was asked", () => told.length === 2);
  await clock.advance(500);
  await telling;
  agent.closeAllConnections();
  await new Promise((resolve) => agent.close(resolve));
  await tellAgent(report, clock, never);
});
