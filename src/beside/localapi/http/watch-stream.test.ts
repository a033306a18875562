import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { Http2ServerResponse } from "node:http2";
import { test } from "node:test";
import type { JsonObject } from "../json.ts";
import { streamWatch } from "./watch-stream.ts";

/** A client that takes as much as it says. */
class FakeResponse extends EventEmitter {
  readonly lines: string[] = [];
  takes = Number.POSITIVE_INFINITY;
  state: "open" | "ended" | "destroyed" = "open";

  writeHead(): void {}
  write(line: string): boolean {
    this.lines.push(line);
    return this.lines.length < this.takes;
  }
  end(): void {
    this.state = "ended";
  }
  destroy(): void {
    this.state = "destroyed";
  }
}

function start(takes: number, initial: readonly JsonObject[] = []) {
  const response = new FakeResponse();
  response.takes = takes;
  const open = new Set<() => void>();
  const watch = { stopped: 0, send: (_event: JsonObject): void => {}, end: (): void => {} };
  streamWatch(
    {
      type: "watch",
      start(send, end) {
        Object.assign(watch, { send, end });
        for (const event of initial) send(event);
        return () => watch.stopped++;
      },
    },
    response as unknown as Http2ServerResponse,
    open,
  );
  return { response, open, watch };
}

const event = (name: number | string): JsonObject => ({ type: "ADDED", object: Object.freeze({ name }) });

test("a client that does not read is sent no more than it takes, and the rest when it does", () => {
  const { response, watch } = start(2);
  for (const name of [1, 2, 3, 4]) watch.send(event(name));
  assert.equal(response.lines.length, 2);
  response.takes = 10;
  response.emit("drain");
  assert.deepEqual(
    response.lines.map((line) => JSON.parse(line).object.name),
    [1, 2, 3, 4],
  );
});

test("a client that falls too far behind is cut off, one with much to begin with is not", () => {
  const { response, watch, open } = start(
    1,
    Array.from({ length: 20_000 }, (_, name) => event(name)),
  );
  assert.equal(response.state, "open");
  watch.send(event("later"));
  assert.equal(response.state, "open");
  for (let name = 0; name < 10_000; name++) watch.send(event(name));
  assert.equal(response.state, "destroyed");
  assert.equal(open.size, 0);
  assert.ok(watch.stopped > 0);
  const { response: patient, watch: other } = start(1);
  for (let name = 0; name < 10_000; name++) other.send(event(name));
  assert.equal(patient.state, "open");
  other.send(event("one too many"));
  other.send(event("another"));
  assert.equal(patient.state, "destroyed");
  assert.equal(patient.lines.length, 1);
});

test("a watch that ends says first what it still has to say", () => {
  const { response, watch, open } = start(1);
  for (const name of [1, 2, 3]) watch.send(event(name));
  watch.end();
  watch.send(event("after the end"));
  assert.equal(response.state, "open");
  response.takes = 10;
  response.emit("drain");
  assert.equal(response.lines.length, 3);
  assert.equal(response.state, "ended");
  assert.equal(open.size, 0);
});

test("a watch that ends while it starts is stopped", () => {
  const response = new FakeResponse();
  let stopped = 0;
  const reply = {
    type: "watch" as const,
    start(send: (event: JsonObject) => void, end: () => void) {
      send(event("error"));
      end();
      return () => stopped++;
    },
  };
  streamWatch(reply, response as unknown as Http2ServerResponse, new Set());
  assert.equal(response.state, "ended");
  assert.equal(response.lines.length, 1);
  assert.ok(stopped > 0);
});

test("the same object told to many is turned into text once", () => {
  let texts = 0;
  const object = Object.freeze({ toJSON: () => ({ text: ++texts }) });
  for (let watcher = 0; watcher < 100; watcher++) start(10).watch.send({ type: "ADDED", object });
  assert.equal(texts, 1);
});
