import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { freePort } from "../../../test/support/free-port.ts";
import { type Logger, silentLogger, TaskScope } from "../../ground/base/index.ts";
import { describeHealth, HealthRegistry, HealthzServer } from "./index.ts";

function setUp() {
  const clock = new FakeClock();
  const health = new HealthRegistry(clock);
  return { clock, health, text: () => describeHealth(health.read(), "reasons") };
}

test("registry: age of the last proof and of the state", async () => {
  const { clock, health, text } = setUp();
  health.report("runtime", { state: "waiting", reason: "no socket" });
  await clock.advance(7_500);
  assert.equal(text(), "[~]runtime waiting for 7s: no socket\nhealthz check passed\n");
  health.report("runtime", { state: "waiting", reason: "still none" });
  await clock.advance(1_000);
  assert.equal(text(), "[~]runtime waiting for 8s: still none\nhealthz check passed\n");
  health.report("runtime", { state: "ok" });
  await clock.advance(3_000);
  assert.equal(text(), "[+]runtime ok (proven 3s ago)\nhealthz check passed\n");
  health.report("runtime", { state: "failed", reason: "gone" });
  await clock.advance(2_000);
  assert.equal(text(), "[-]runtime failed 2s ago: gone\nhealthz check failed\n");
  assert.equal(health.read()[0]?.provenMs, 5_000);
});

test("registry: a part expected to report fails once it falls silent, and passes before it began", async () => {
  const { clock, health } = setUp();
  const state = () => health.read()[0]?.health;
  health.expect("syncloop", 300_000, "sync Loop took longer than expected");
  await clock.advance(900_000);
  assert.deepEqual(state(), { state: "ok" });
  health.report("syncloop", { state: "ok" });
  await clock.advance(300_000);
  assert.deepEqual(state(), { state: "ok" });
  await clock.advance(1);
  assert.deepEqual(state(), { state: "failed", reason: "sync Loop took longer than expected" });
  await clock.advance(60_000);
  assert.equal(health.read()[0]?.sinceMs, 60_000);
  health.report("syncloop", { state: "ok" });
  assert.deepEqual(state(), { state: "ok" });
});

test("registry: a watched check is asked each time, with its own proof", async () => {
  const { clock, health, text } = setUp();
  let answer: ReturnType<Parameters<HealthRegistry["watch"]>[1]> = { state: "ok", provenAt: clock.monotonic() };
  health.watch("log", () => answer);
  await clock.advance(4_000);
  assert.match(text(), /\[\+\]log ok \(proven 4s ago\)/);
  answer = { state: "failed", reason: "logging blocked" };
  assert.match(text(), /\[-\]log failed 0s ago: logging blocked/);
  health.forget("log");
  assert.equal(health.read().length, 0);
});

test("description: excluded checks, unknown exclusions, withheld reasons", () => {
  const { health } = setUp();
  health.report("a", { state: "failed", reason: "secret path" });
  health.report("b", { state: "waiting", reason: "soon" });
  assert.equal(describeHealth(health.read(), "names"), "[-]a failed: reason withheld\n[+]b ok\nhealthz check failed\n");
  assert.equal(
    describeHealth(health.read(), "names", new Set(["a", "x"])),
    '[+]a excluded: ok\n[+]b ok\nwarn: some health checks cannot be excluded: no matches for "x"\nhealthz check passed\n',
  );
});

/** A log that a test can wait on. */
function collectingLog(): { log: Logger; lines: string[] } {
  const lines: string[] = [];
  const log: Logger = {
    ...silentLogger,
    info: (message) => lines.push(message),
    error: (message, error) => lines.push(`${message}: ${String(error)}`),
    named: () => log,
  };
  return { log, lines };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await settle(1);
}

test("healthz: only /healthz answers, with ok even when a check has failed", async () => {
  const { clock, health } = setUp();
  const { log, lines } = collectingLog();
  const port = await freePort();
  await using scope = new TaskScope();
  const server = new HealthzServer({ host: "127.0.0.1", port }, { health, clock, log });
  scope.spawn("healthz", (signal) => server.run(signal));
  await until(() => lines.includes("Started healthz server"));
  health.report("runtime", { state: "failed", reason: "gone" });
  const get = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    return [response.status, await response.text(), response.headers.get("x-content-type-options")];
  };
  assert.deepEqual(await get("/healthz"), [200, "ok", "nosniff"]);
  assert.deepEqual(await get("/healthz/"), [200, "ok", "nosniff"]);
  assert.deepEqual(await get("/healthz/ping"), [200, "ok", "nosniff"]);
  assert.deepEqual(await get("/healthz?verbose"), [
    200,
    "[+]ping ok\n[+]healthz ok (proven 0s ago)\n[-]runtime failed 0s ago: gone\nhealthz check failed\n",
    "nosniff",
  ]);
  for (const path of ["/", "/pods", "/healthz/runtime", "/metrics"]) assert.equal((await get(path))[0], 404, path);
  await scope.stop();
  await assert.rejects(get("/healthz"));
});

test("healthz: a port in use is tried again every 5 s", async () => {
  const { clock, health } = setUp();
  const { log, lines } = collectingLog();
  const occupant = createServer().listen(0, "127.0.0.1");
  await once(occupant, "listening");
  const { port } = occupant.address() as AddressInfo;
  await using scope = new TaskScope();
  const server = new HealthzServer({ host: "127.0.0.1", port }, { health, clock, log });
  scope.spawn("healthz", (signal) => server.run(signal));
  await until(() => clock.pendingTimers === 1);
  assert.match(lines.at(-1) ?? "", /Failed to start healthz server: .*EADDRINUSE/);
  await clock.advance(4_999);
  assert.equal(lines.length, 1);
  await clock.advance(1);
  await until(() => lines.length === 2 && clock.pendingTimers === 1);
  occupant.close();
  await once(occupant, "close");
  await clock.advance(5_000);
  await until(() => lines.includes("Started healthz server"));
  assert.equal(await (await fetch(`http://127.0.0.1:${port}/healthz`)).text(), "ok");
});
