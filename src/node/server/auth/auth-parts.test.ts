import assert from "node:assert/strict";
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { test } from "node:test";
import { FakeClock, settle } from "../../../../test/support/fake-clock.ts";
import { AccessAuthorizer } from "./access-authorizer.ts";
import { bearerToken, withoutToken } from "./bearer.ts";
import { ExpiringCache } from "./expiring-cache.ts";
import { PatientReviews, type Reviews } from "./reviews.ts";
import { TokenAuthenticator } from "./token-authenticator.ts";

const encoded = `base64url.bearer.authorization.k8s.io.${Buffer.from("tok?en").toString("base64url")}`;

for (const [what, headers, expected] of [
  ["none", {}, { type: "none" }],
  ["a header", { authorization: "Bearer abc" }, { type: "token", token: "abc" }],
  ["any case, more words", { authorization: "bEaReR  abc def" }, { type: "token", token: "abc" }],
  ["another scheme", { authorization: "Basic abc" }, { type: "none" }],
  ["an empty one", { authorization: "Bearer " }, { type: "none" }],
  [
    "a protocol",
    { upgrade: "websocket", "sec-websocket-protocol": `${encoded}, v4.channel.k8s.io` },
    { type: "token", token: "tok?en" },
  ],
  ["a protocol without upgrade", { "sec-websocket-protocol": `${encoded}, v4.channel.k8s.io` }, { type: "none" }],
  [
    "a protocol alone",
    { upgrade: "WebSocket", "sec-websocket-protocol": encoded },
    { type: "invalid", why: "missing additional subprotocol" },
  ],
  [
    "two protocols",
    { upgrade: "websocket", "sec-websocket-protocol": `${encoded}, ${encoded}` },
    { type: "invalid", why: "multiple base64.bearer.authorization tokens specified" },
  ],
  [
    "rubbish as protocol",
    { upgrade: "websocket", "sec-websocket-protocol": "base64url.bearer.authorization.k8s.io.a$b, x" },
    { type: "invalid", why: "invalid base64.bearer.authorization token encoding" },
  ],
] as const) {
  test(`bearer token: ${what}`, () => {
    const request = new IncomingMessage(new Socket());
    Object.assign(request.headers, headers);
    assert.deepEqual(bearerToken(request), expected);
  });
}

test("the token does not go on to the runtime", () =>
  assert.equal(withoutToken(`${encoded}, v4.channel.k8s.io`), "v4.channel.k8s.io"));

test("cache: each entry for its time, the least used goes first", async () => {
  const clock = new FakeClock();
  const cache = new ExpiringCache<number>(clock, 2);
  cache.set("a", 1, 1_000);
  cache.set("b", 2, 2_000);
  assert.equal(cache.get("a"), 1);
  cache.set("c", 3, 2_000);
  assert.deepEqual([cache.get("a"), cache.get("b"), cache.get("c")], [1, undefined, 3]);
  await clock.advance(1_000);
  assert.deepEqual([cache.get("a"), cache.get("c"), cache.size], [undefined, 3, 1]);
  cache.set("d", 4, 0);
  assert.equal(cache.get("d"), undefined);
});

class CountingReviews implements Reviews {
  calls = 0;
  failures = 0;
  async token() {
    this.#work();
    return { authenticated: true, user: { username: "u" } };
  }
  async access() {
    this.#work();
    return { allowed: this.calls % 2 === 1 };
  }
  isTransient(error: unknown): boolean {
    return error instanceof Error && error.message === "try again";
  }
  #work(): void {
    this.calls++;
    if (this.failures-- > 0) throw new Error("try again");
  }
}

function patient(reviews: Reviews, clock: FakeClock): PatientReviews {
  return new PatientReviews({ reviews, clock, random: () => 0 });
}

test("tokens: questions at one time are one; a ttl of 0 remembers nothing", async () => {
  const clock = new FakeClock();
  const reviews = new CountingReviews();
  const tokens = new TokenAuthenticator(1_000, patient(reviews, clock), clock);
  const all = await Promise.all([
    tokens.authenticate("t", "10.0.0.1"),
    tokens.authenticate("t", "10.0.0.1"),
    tokens.authenticate("t", "10.0.0.1"),
  ]);
  assert.deepEqual(all[0], { name: "u", groups: ["system:authenticated"], extra: {} });
  assert.equal(reviews.calls, 1);
  await clock.advance(1_000);
  await tokens.authenticate("t", "10.0.0.1");
  assert.equal(reviews.calls, 2);
  const forgetful = new TokenAuthenticator(0, patient(reviews, clock), clock);
  await forgetful.authenticate("t", "10.0.0.1");
  await forgetful.authenticate("t", "10.0.0.1");
  assert.equal(reviews.calls, 4);
});

test("reviews: trouble that may pass is tried five times, 500 ms and more apart; errors are not remembered", async () => {
  const clock = new FakeClock();
  const reviews = new CountingReviews();
  const tokens = new TokenAuthenticator(60_000, patient(reviews, clock), clock);
  reviews.failures = 4;
  const found = tokens.authenticate("t", "10.0.0.1");
  await clock.advance(499);
  assert.equal(reviews.calls, 1);
  await clock.advance(1);
  assert.equal(reviews.calls, 2);
  await clock.advance(750 + 1_125 + 1_688);
  assert.equal((await found)?.name, "u");
  reviews.failures = 5;
  const lost = assert.rejects(tokens.authenticate("other", "10.0.0.1"), /try again/);
  await clock.advance(20_000);
  await lost;
  assert.equal((await tokens.authenticate("other", "10.0.0.1"))?.name, "u");
});

test("reviews: no answer in 30 s is an error", async () => {
  const clock = new FakeClock();
  const reviews: Reviews = {
    token: (_, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    access: async () => ({ allowed: false }),
    isTransient: () => true,
  };
  const tokens = new TokenAuthenticator(60_000, patient(reviews, clock), clock);
  const lost = assert.rejects(tokens.authenticate("t", "10.0.0.1"), /gave no answer in 30000 ms/);
  await settle();
  await clock.advance(30_000);
  await lost;
  assert.equal(clock.pendingTimers, 0);
});

test("access: yes and no have their own times; what is too long is not kept", async () => {
  const clock = new FakeClock();
  const reviews = new CountingReviews();
  const access = new AccessAuthorizer(
    { nodeName: "n", allowedTtlMs: 5_000, deniedTtlMs: 1_000 },
    patient(reviews, clock),
    clock,
  );
  const user = { name: "u", groups: [], extra: {} };
  assert.equal(await access.isAllowed(user, "get", "pods", "10.0.0.1"), true);
  assert.equal(await access.isAllowed(user, "get", "proxy", "10.0.0.1"), false);
  await clock.advance(1_000);
  assert.equal(await access.isAllowed(user, "get", "pods", "10.0.0.1"), true);
  assert.equal(reviews.calls, 2);
  assert.equal(await access.isAllowed(user, "get", "proxy", "10.0.0.1"), true);
  assert.equal(reviews.calls, 3);
  const long = { ...user, groups: ["g".repeat(10_000)] };
  await access.isAllowed(long, "get", "pods", "10.0.0.1");
  await access.isAllowed(long, "get", "pods", "10.0.0.1");
  assert.equal(reviews.calls, 5);
});

test("an address that makes up tokens waits for itself; the others are heard", async () => {
  const clock = new FakeClock();
  const answers: (() => void)[] = [];
  const reviews: Reviews = {
    token: async () => {
      await new Promise<void>((resolve) => answers.push(resolve));
      return { authenticated: false };
    },
    access: async () => ({ allowed: true }),
    isTransient: () => false,
  };
  const asked = patient(reviews, clock);
  const tokens = new TokenAuthenticator(60_000, asked, clock);
  const access = new AccessAuthorizer({ nodeName: "n", allowedTtlMs: 0, deniedTtlMs: 0 }, asked, clock);
  const flood = Array.from({ length: 1_000 }, (_, index) => tokens.authenticate(`t${index}`, "10.0.0.66"));
  const outcomes = Promise.allSettled(flood);
  await settle();
  assert.equal(answers.length, 4, "questions of the one at a time");
  assert.equal(await access.isAllowed({ name: "u", groups: [], extra: {} }, "get", "proxy", "10.0.0.1"), true);
  for (let round = 0; round < 100; round++) {
    for (const answer of answers.splice(0)) answer();
    await settle(1);
  }
  const refused = (await outcomes).filter(({ status }) => status === "rejected");
  assert.equal(refused.length, 1_000 - 64);
  const later = tokens.authenticate("late", "10.0.0.66");
  await settle();
  for (const answer of answers.splice(0)) answer();
  assert.equal(await later, undefined);
});
