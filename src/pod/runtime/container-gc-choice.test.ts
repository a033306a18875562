import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseContainers, chooseEnded, chooseSandboxes } from "./container-gc-choice.ts";

/** `pod/container@created`, e.g. `a/web@3`; `#attempt` follows where it matters, and `new` if it never ran. */
function dead(text: string) {
  const form = /^(\w+)\/(\w+)@(\d+)#?(\d*)(new)?$/;
  const [, podUid = "", name = "", created = "", attempt = "0", unstarted] = form.exec(text) ?? [];
  return {
    ...{ id: text, podUid, name, createdAt: Number(created), attempt: Number(attempt) },
    isUnstarted: unstarted !== undefined,
  };
}

for (const { about, containers, limits, over = [], goes } of [
  {
    about: "the newest of each container stays",
    containers: ["a/web@1", "a/web@3", "a/web@2", "a/log@1", "b/web@1"],
    limits: { maxPerContainer: 1, maxInAll: -1 },
    goes: ["a/web@1", "a/web@2"],
  },
  {
    about: "the newest is the last attempt, though the clock was set back before it",
    containers: ["a/web@9#0", "a/web@3#1"],
    limits: { maxPerContainer: 1, maxInAll: -1 },
    goes: ["a/web@9#0"],
  },
  {
    about: "one that is yet to start takes no place of the last that ended",
    containers: ["a/web@1#0", "a/web@2#1", "a/web@3#2new"],
    limits: { maxPerContainer: 1, maxInAll: -1 },
    goes: ["a/web@1#0"],
  },
  {
    about: "one that never ran and was overtaken goes before the last that ended",
    containers: ["a/web@1#0", "a/web@2#1new", "a/web@3#2new"],
    limits: { maxPerContainer: 1, maxInAll: 1 },
    goes: ["a/web@2#1new"],
  },
  {
    about: "none stays when none is to be kept",
    containers: ["a/web@1", "b/web@1"],
    limits: { maxPerContainer: 0, maxInAll: -1 },
    goes: ["a/web@1", "b/web@1"],
  },
  {
    about: "all stay when both limits are negative",
    containers: ["a/web@1", "a/web@2"],
    limits: { maxPerContainer: -1, maxInAll: -1 },
    goes: [],
  },
  {
    about: "pods that are over lose all",
    containers: ["a/web@1", "a/log@9", "b/web@1"],
    limits: { maxPerContainer: 1, maxInAll: -1 },
    over: ["a"],
    goes: ["a/web@1", "a/log@9"],
  },
  {
    about: "too many in all: the same share for each container first",
    containers: ["a/web@1", "a/web@2", "a/web@3", "a/web@4", "b/web@1"],
    limits: { maxPerContainer: -1, maxInAll: 4 },
    goes: ["a/web@1", "a/web@2"],
  },
  {
    about: "too many in all: then the oldest, though only one of its name is left",
    containers: ["a/web@1", "b/web@2", "c/web@3"],
    limits: { maxPerContainer: 1, maxInAll: 2 },
    goes: ["a/web@1"],
  },
  {
    about: "too many in all: none may stay",
    containers: ["a/web@1", "b/web@2"],
    limits: { maxPerContainer: 1, maxInAll: 0 },
    goes: ["a/web@1", "b/web@2"],
  },
  {
    about: "what goes for its pod does not count against the total",
    containers: ["a/web@1", "a/web@2", "b/web@1"],
    limits: { maxPerContainer: 2, maxInAll: 1 },
    over: ["a"],
    goes: ["a/web@1", "a/web@2"],
  },
]) {
  test(`containers: ${about}`, () => {
    const chosen = chooseContainers(containers.map(dead), limits, (uid) => over.includes(uid));
    assert.deepEqual(chosen.map(({ id }) => id).toSorted(), goes.toSorted());
  });
}

test("ended instances: the newest of each name are kept", () => {
  const ended = ["p/web@1", "p/web@2", "p/web@3", "p/log@1"].map(dead);
  const ids = (keep: number) => chooseEnded(ended, keep).map(({ id }) => id);
  assert.deepEqual(ids(1), ["p/web@2", "p/web@1"]);
  assert.deepEqual(ids(2), ["p/web@1"]);
  assert.deepEqual(ids(0).length, 4);
  const setBack = chooseEnded(["p/web@9#0", "p/web@3#1"].map(dead), 1);
  assert.deepEqual(
    setBack.map(({ id }) => id),
    ["p/web@9#0"],
  );
});

for (const { about, sandboxes, over = [], goes } of [
  { about: "the newest of a pod stays though nobody needs it", sandboxes: ["a/-@1"], goes: [] },
  { about: "older ones go", sandboxes: ["a/-@1", "a/-@2", "a/-@3"], goes: ["a/-@1", "a/-@2"] },
  {
    about: "the last attempt stays, though the clock was set back",
    sandboxes: ["a/-@9#0", "a/-@3#1"],
    goes: ["a/-@9#0"],
  },
  { about: "older ones in use stay", sandboxes: ["a/used@1", "a/-@2"], goes: [] },
  {
    about: "a pod that is over loses all that is not in use",
    sandboxes: ["a/-@1", "a/used@2", "b/-@1"],
    over: ["a"],
    goes: ["a/-@1"],
  },
]) {
  test(`sandboxes: ${about}`, () => {
    const known = sandboxes.map((text) => {
      const [, podUid = "", use = "", created = "", attempt = "0"] = /^(\w+)\/(.+)@(\d+)#?(\d*)$/.exec(text) ?? [];
      return { id: text, podUid, createdAt: Number(created), attempt: Number(attempt), isNeeded: use === "used" };
    });
    const chosen = chooseSandboxes(known, (uid) => over.includes(uid));
    assert.deepEqual(chosen.map(({ id }) => id).toSorted(), goes);
  });
}
