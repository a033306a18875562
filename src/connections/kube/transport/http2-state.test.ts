import assert from "node:assert/strict";
import { test } from "node:test";
import { type Http2Event, type Http2State, newlyOpen, nextHttp2State } from "./http2-state.ts";

const open = (mostStreams: number): Http2State => ({ step: "open", mostStreams });
const retiring: Http2State = { step: "retiring" };
const [first, second] = [new Error("first"), new Error("second")];
const broken: Http2State = { step: "broken", by: first };
const settings = (mostStreams: number | undefined): Http2Event => ({ type: "settings", mostStreams });
const retire: Http2Event = { type: "retire" };
const breaks = (by: Error): Http2Event => ({ type: "break", by });

for (const [name, state, event, wanted] of [
  ["a new connection takes what every peer allows", newlyOpen, settings(undefined), open(100)],
  ["the peer allows less", newlyOpen, settings(3), open(3)],
  ["the peer thinks again", open(3), settings(250), open(250)],
  ["open is replaced", open(3), retire, retiring],
  ["open breaks", open(3), breaks(first), broken],
  ["retiring takes nothing new, whatever its peer would allow", retiring, settings(250), retiring],
  ["retiring is replaced once", retiring, retire, retiring],
  ["retiring breaks", retiring, breaks(first), broken],
  ["broken stays broken by what broke it first", broken, breaks(second), broken],
  ["broken is not replaced", broken, retire, broken],
  ["broken does not open again", broken, settings(3), broken],
] as const) {
  test(name, () => assert.deepEqual(nextHttp2State(state, event), wanted));
}
