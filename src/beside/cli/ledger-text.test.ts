import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { Ledger } from "../../ground/base/index.ts";
import { blameText, whyText } from "./ledger-text.ts";

const start = Date.UTC(2026, 0, 1, 12, 0, 0);
const pod = { name: "web", namespace: "default", uid: "u1", phase: "Pending" };

async function timeline(): Promise<{ clock: FakeClock; ledger: Ledger<string> }> {
  const clock = new FakeClock(start);
  const ledger = new Ledger<string>(clock);
  ledger.note("u1", "seen", "from file");
  await clock.advance(5);
  const sandbox = ledger.begin("u1", "sandbox");
  const pull = ledger.begin("u1", "pull", "busybox:1");
  await clock.advance(100);
  pull.end();
  await clock.advance(100);
  sandbox.end();
  return { clock, ledger };
}

test("why: names the blocker, since when, and the next try", async () => {
  const { clock, ledger } = await timeline();
  const message = "back-off 10s restarting failed container=main pod=web";
  ledger.block("u1", { reason: "CrashLoopBackOff", message, nextTryAt: clock.now() + 8_000 });
  await clock.advance(2_000);
  const view = ledger.read("u1");
  assert.ok(view);
  const text = whyText({ pod, ledger: view, now: clock.now() });
  assert.match(text, /default\/web is Pending \(uid u1\)/);
  assert.match(text, /waiting for: CrashLoopBackOff since 2s \(12:00:00\.205\)/);
  assert.match(text, /back-off 10s restarting failed container=main/);
  assert.match(text, /next try: {4}in 6s \(12:00:08\.205\)/);
  assert.match(text, /sandbox +took 200ms/);
  assert.match(text, /pull busybox:1 +took 100ms/);
});

test("why: says what is going on when nothing blocks", async () => {
  const { clock, ledger } = await timeline();
  ledger.begin("u1", "start", "main");
  await clock.advance(3_000);
  const view = ledger.read("u1");
  assert.ok(view);
  assert.match(whyText({ pod, ledger: view, now: clock.now() }), /at work on: start main for 3s/);
});

test("why: what a pod calls its image begins no line", async () => {
  const { clock, ledger } = await timeline();
  ledger.begin("u1", "pull", "busybox\nwaiting for: nothing");
  const text = whyText({ pod, ledger: ledger.read("u1") ?? assert.fail(), now: clock.now() });
  assert.match(text, /at work on: pull busybox\^Jwaiting for: nothing/);
  assert.doesNotMatch(text, /^waiting for/m);
});

test("blame: shares of the start-up time, with what went on side by side", async () => {
  const { clock, ledger } = await timeline();
  const create = ledger.begin("u1", "create", "main");
  await clock.advance(50);
  create.end();
  ledger.note("u1", "running", "all containers run");
  await clock.advance(60_000);
  const view = ledger.read("u1");
  assert.ok(view);
  const text = blameText({ pod, ledger: view, now: clock.now() });
  assert.match(text, /default\/web: 255ms from first sight to ready containers/);
  assert.match(text, /sandbox \(runtime and pod network\) +200ms +78 %/);
  assert.match(text, /images +100ms +39 %/);
  assert.match(text, /containers \(runtime\) +50ms +20 %/);
  assert.match(text, /agent and waiting +5ms +2 %/);
  assert.match(text, /\(100ms of this went on side by side\)/);
});

test("tries that fail alike are one line with a count, beside those of others", async () => {
  const clock = new FakeClock();
  const ledger = new Ledger<string>(clock);
  for (let count = 0; count < 300; count++) {
    for (const image of ["a", "b"]) {
      const pull = ledger.begin("u", "pull", image);
      await clock.advance(1_000);
      pull.fail(count === 0 && image === "b" ? "another reason" : "no such image");
    }
  }
  ledger.begin("u", "pull", "a").end();
  const view = ledger.read("u");
  assert.deepEqual(
    view?.entries.map(({ subject, outcome, repeats }) => [subject, outcome, repeats]),
    [
      ["a", "failed", 300],
      ["b", "failed", undefined],
      ["b", "failed", 299],
      ["a", "ok", undefined],
    ],
  );
  const pod = { namespace: "default", name: "web", uid: "u" };
  const text = whyText({ pod, ledger: view ?? assert.fail(), now: clock.now() });
  assert.match(text, /pull a {2}failed after 1s \(300 times, last 2s ago\) {2}no such image/);
});

test("the ledger stays bounded, keeps the beginning, and counts repeats", async () => {
  const clock = new FakeClock(start);
  const ledger = new Ledger<string>(clock, 8);
  ledger.note("u1", "seen", "from file");
  for (let round = 0; round < 3; round++) ledger.note("u1", "exit", "exit code 1", "main");
  for (let round = 0; round < 20; round++) ledger.note("u1", "status", `round ${round}`);
  const view = ledger.read("u1");
  assert.equal(view?.entries.length, 8);
  assert.equal(view?.entries[0]?.step, "seen");
  assert.equal(view?.entries[1]?.repeats, 3);
  assert.equal(view?.entries.at(-1)?.message, "round 19");
  assert.equal(view?.dropped, 14);
});
