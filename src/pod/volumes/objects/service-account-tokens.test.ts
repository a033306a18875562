import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { silentLogger } from "../../../ground/base/index.ts";
import type { TokenRequestSpec } from "../../../ground/model/index.ts";
import { TokenManager } from "./service-account-tokens.ts";

const never = new AbortController().signal;
const hour = 3_600_000;

/** An API server that grants what is asked for, unless told otherwise. */
function setUp(options: { grantedSeconds?: number; random?: number; serverAheadMs?: number } = {}) {
  const clock = new FakeClock();
  const asked: TokenRequestSpec[] = [];
  const server = { failure: undefined as Error | undefined };
  const tokens = new TokenManager({
    clock,
    log: silentLogger,
    random: () => options.random ?? 0,
    request: async (_namespace, _account, spec) => {
      asked.push(spec);
      if (server.failure !== undefined) throw server.failure;
      const seconds = options.grantedSeconds ?? spec.expirationSeconds ?? 0;
      const expirationTimestamp = new Date(clock.now() + (options.serverAheadMs ?? 0) + seconds * 1000).toISOString();
      return {
        spec: { ...spec, expirationSeconds: seconds },
        status: { token: `token-${asked.length}`, expirationTimestamp },
      };
    },
  });
  const get = (more: Partial<TokenRequestSpec> = {}, account = "builder") =>
    tokens.get("default", account, { audiences: [], expirationSeconds: 3600, ...more }, never);
  return { clock, tokens, asked, server, get };
}

for (const { name, seconds, random, refreshAfterMs } of [
  { name: "an hour", seconds: 3600, random: 0, refreshAfterMs: 0.8 * hour },
  { name: "ten minutes", seconds: 600, random: 0, refreshAfterMs: 480_000 },
  { name: "an hour, with jitter", seconds: 3600, random: 0.55, refreshAfterMs: 0.8 * hour - 5_000 },
  { name: "the most jitter", seconds: 3600, random: 0.999, refreshAfterMs: 0.8 * hour - 9_000 },
  { name: "a week is used for a day", seconds: 7 * 24 * 3600, random: 0, refreshAfterMs: 24 * hour },
] as const) {
  test(`renewed in time: ${name}`, async () => {
    const { clock, asked, get } = setUp({ random });
    const first = await get({ expirationSeconds: seconds });
    assert.equal(first.refreshAt - clock.now(), refreshAfterMs);
    await clock.advance(refreshAfterMs - 1);
    assert.equal((await get({ expirationSeconds: seconds })).token, "token-1");
    await clock.advance(1);
    assert.equal((await get({ expirationSeconds: seconds })).token, "token-2");
    assert.equal(asked.length, 2);
  });
}

test("the lifetime counts that the server granted, not what was asked for", async () => {
  const { clock, get } = setUp({ grantedSeconds: 600 });
  assert.equal((await get()).refreshAt - clock.now(), 480_000);
});

test("who asks for something else gets another token; who asks at once for the same shares one request", async () => {
  const { asked, get, tokens } = setUp();
  const both = await Promise.all([get(), get()]);
  assert.deepEqual(
    both.map(({ token }) => token),
    ["token-1", "token-1"],
  );
  await get({ audiences: ["vault"] });
  await get({ expirationSeconds: 600 });
  await get({ boundObjectRef: { kind: "Pod", uid: "u" } });
  await get({}, "other");
  assert.equal(asked.length, 5);
  assert.equal(tokens.size, 5);
});

test("renewal fails: the old token is used until it expires, then the error shows", async () => {
  const { clock, server, get, asked } = setUp();
  await get();
  server.failure = new Error("connection refused");
  await clock.advance(0.9 * hour);
  const kept = await get();
  assert.equal(kept.token, "token-1");
  assert.ok(kept.refreshAt > clock.now(), "asked again soon, not at once");
  await clock.advance(0.1 * hour);
  await assert.rejects(get(), { message: 'token "builder"/"default" expired and refresh failed: connection refused' });
  server.failure = undefined;
  assert.equal((await get()).token, `token-${asked.length}`);
});

test("no token at all", async () => {
  const { server, get } = setUp();
  server.failure = new Error('serviceaccounts "builder" not found');
  await assert.rejects(get(), { message: 'failed to fetch token: serviceaccounts "builder" not found' });
  const alone = new TokenManager({ request: undefined, clock: new FakeClock(), log: silentLogger, random: () => 0 });
  await assert.rejects(alone.get("n", "a", { audiences: [] }, never), {
    message: "failed to fetch token: cannot use TokenManager when kubelet is in standalone mode",
  });
});

test("nothing is kept of pods that are gone, nor for longer than it is good", async () => {
  const { clock, tokens, get } = setUp();
  await get({ boundObjectRef: { kind: "Pod", uid: "gone" } });
  await get({ boundObjectRef: { kind: "Pod", uid: "stays" } });
  tokens.forgetPod("gone");
  assert.equal(tokens.size, 1);
  await clock.advance(2 * hour);
  await get({ boundObjectRef: { kind: "Pod", uid: "new" } });
  assert.equal(tokens.size, 1);
});

for (const serverAheadMs of [-30 * hour, -hour, hour, 30 * hour]) {
  test(`the server's clock is ${serverAheadMs / hour} hours ahead of ours: each token is used for its time`, async () => {
    const { clock, asked, get } = setUp({ serverAheadMs });
    for (let use = 1; use <= 3; use++) {
      const { token, refreshAt } = await get();
      assert.equal(token, `token-${use}`);
      assert.equal(refreshAt - clock.now(), 0.8 * hour);
      await clock.advance(0.8 * hour - 1);
      assert.equal((await get()).token, token);
      await clock.advance(1);
    }
    assert.equal(asked.length, 3);
  });
}

test("our clock is set: a token is renewed once too often at worst, and never too late", async () => {
  const { clock, asked, get } = setUp();
  await get();
  clock.setBack(3 * hour);
  assert.equal((await get()).refreshAt - clock.now(), 0.8 * hour);
  await clock.advance(0.8 * hour);
  assert.equal((await get()).token, "token-2");
  clock.setBack(-5 * hour);
  assert.equal((await get()).token, "token-3");
  assert.equal((await get()).refreshAt - clock.now(), 0.8 * hour);
  assert.equal(asked.length, 3);
});

test("a server that grants no time at all is not asked without a pause", async () => {
  const { clock, get } = setUp({ grantedSeconds: 1e-9 });
  assert.ok((await get()).refreshAt >= clock.now() + 10_000);
});

test("who stops asking does not take the token from another who asked for the same", async () => {
  let answer = (): void => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const tokens = new TokenManager({
    clock: new FakeClock(),
    log: silentLogger,
    random: () => 0,
    request: async (_namespace, _account, spec, signal) => {
      await answered;
      signal.throwIfAborted();
      return { spec, status: { token: "t", expirationTimestamp: new Date(hour).toISOString() } };
    },
  });
  const leaving = new AbortController();
  const left = assert.rejects(tokens.get("n", "a", { audiences: [] }, leaving.signal));
  const stays = tokens.get("n", "a", { audiences: [] }, never);
  leaving.abort();
  await left;
  answer();
  assert.equal((await stays).token, "t");
});
