import assert from "node:assert/strict";
import type { LookupAddress } from "node:dns";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { SystemNames } from "./system-names.ts";

const address: LookupAddress = { address: "192.0.2.1", family: 4 };
const other: LookupAddress = { address: "2001:db8::1", family: 6 };

/** A name server that answers when the test says so. */
class Server {
  readonly asked: string[] = [];
  readonly #waiting: { readonly resolve: (found: LookupAddress[]) => void; readonly reject: (error: Error) => void }[] =
    [];

  readonly ask = (name: string): Promise<readonly LookupAddress[]> => {
    this.asked.push(name);
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  };

  async answer(found: LookupAddress[] | Error): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    const next = this.#waiting.shift();
    if (found instanceof Error) next?.reject(found);
    else next?.resolve(found);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("a dead name server is waited for by two threads at most, and by nobody for long", async () => {
  const [clock, server] = [new FakeClock(), new Server()];
  const names = new SystemNames({ clock, ask: server.ask });
  const questions = ["api", "api", "api", "manifests", "node", "a.example", "b.example"].map((name) =>
    assert.rejects(names.resolve(name), { code: "EAI_AGAIN" }),
  );
  await clock.advance(5_000);
  await Promise.all(questions);
  // Asked again and again, as loops do.
  for (let turn = 0; turn < 5; turn++) {
    const again = assert.rejects(names.resolve("api"), { code: "EAI_AGAIN" });
    await clock.advance(5_000);
    await again;
  }
  assert.deepEqual(server.asked, ["api", "manifests"]);
  assert.equal(clock.pendingTimers, 0);
  await server.answer([address]);
  assert.deepEqual(server.asked, ["api", "manifests", "node"]);
});

test("the last answer stands in for one that does not come, and a plain no is believed", async () => {
  const [clock, server] = [new FakeClock(), new Server()];
  const names = new SystemNames({ clock, ask: server.ask });
  const first = names.resolve("api");
  await server.answer([address, other]);
  assert.deepEqual(await first, [address, other]);
  const late = names.resolve("api");
  await clock.advance(5_000);
  assert.deepEqual(await late, [address, other]);
  await server.answer(Object.assign(new Error("try again"), { code: "EAI_AGAIN" }));
  const failed = names.resolve("api");
  await server.answer(Object.assign(new Error("try again"), { code: "EAI_AGAIN" }));
  assert.deepEqual(await failed, [address, other]);
  const gone = assert.rejects(names.resolve("api"), { code: "ENOTFOUND" });
  await server.answer(Object.assign(new Error("no such name"), { code: "ENOTFOUND" }));
  await gone;
});

test("sockets are given what they ask for", async () => {
  const names = new SystemNames({ clock: new FakeClock(), ask: async () => [other, address] });
  const asked = (options: object): Promise<unknown[]> =>
    new Promise((resolve) => names.lookup("api", options, (...answer) => resolve(answer)));
  assert.deepEqual(await asked({ all: true }), [null, [other, address]]);
  assert.deepEqual(await asked({ all: false }), [null, "2001:db8::1", 6]);
  assert.deepEqual(await asked({ family: 4 }), [null, "192.0.2.1", 4]);
});
