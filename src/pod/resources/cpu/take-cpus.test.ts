import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { machineA, machineB, machineC, machineU, madeUpTopology } from "../../../../test/support/made-up-topology.ts";
import { CpuSet } from "../../../ground/base/index.ts";
import { CpuTopology } from "./cpu-topology.ts";
import { takeDistributed } from "./take-distributed.ts";
import { TooFewCpusError, takePacked } from "./take-packed.ts";

const [a, b, c, u] = [machineA, machineB, machineC, machineU].map((machine) => new CpuTopology(machine)) as [
  CpuTopology,
  CpuTopology,
  CpuTopology,
  CpuTopology,
];
const free = (topology: CpuTopology, reserved: string): CpuSet => topology.cpus.without(CpuSet.parse(reserved));
const onlyCaches = { order: "packed", keepsToCaches: true } as const;
const spread = { order: "spread", keepsToCaches: false } as const;

describe("packed", () => {
  for (const [name, topology, reserved, chosen] of [
    [
      "A",
      a,
      "0,8",
      { 0: "", 1: "1", 2: "1,9", 3: "1-2,9", 4: "1-2,9-10", 6: "1-3,9-11", 7: "1-4,9-11", 8: "4-7,12-15" },
    ],
    ["A, large", a, "0,8", { 10: "1,4-7,9,12-15", 14: "1-7,9-15" }],
    ["A, half a core reserved", a, "0", { 1: "8", 2: "1,9", 3: "1,8-9", 9: "4-8,12-15" }],
    ["A, nothing reserved", a, "", { 2: "0,8", 3: "0-1,8" }],
    [
      "B",
      b,
      "0,6",
      { 1: "2", 2: "2,8", 3: "2,4,8", 4: "2,4,8,10", 5: "1-2,4,8,10", 6: "1,3,5,7,9,11", 8: "1-3,5,7-9,11" },
    ],
    ["C", c, "0,16", { 7: "1-4,17-19", 8: "4-7,20-23", 9: "1,4-7,20-23", 16: "8-15,24-31", 18: "1,8-15,17,24-31" }],
    ["U", u, "0,16", { 8: "1-4,17-20", 12: "1-6,17-22" }],
  ] as const) {
    for (const [count, cpus] of Object.entries(chosen)) {
      test(`${name}: ${count}`, () => {
        assert.equal(takePacked(topology, free(topology, reserved), Number(count)).toString(), cpus);
      });
    }
  }

  test("more than there are", () => {
    assert.throws(() => takePacked(a, free(a, "0,8"), 15), {
      name: "TooFewCpusError",
      message: "not enough cpus available to satisfy request: requested=15, available=14",
    });
  });

  test("one after the other: half a core that is free goes first", () => {
    let left = free(a, "0,8");
    const taken = [2, 2, 4, 3, 1].map((count) => {
      const cpus = takePacked(a, left, count);
      left = left.without(cpus);
      return cpus.toString();
    });
    assert.deepEqual(taken, ["1,9", "2,10", "3-4,11-12", "5-6,13", "14"]);
  });

  test("an offline sibling: its core counts as the whole core that it is, the others as what they are", () => {
    const cpus = machineA.nodes.map((node) => ({ ...node, cpus: node.cpus.filter(({ id }) => id !== 15) }));
    const topology = new CpuTopology({ nodes: cpus });
    assert.equal(topology.threadsPerCore, 2);
    assert.equal(takePacked(topology, topology.cpus, 3).toString(), "4,7,12");
    assert.equal(takePacked(topology, topology.cpus.without(CpuSet.parse("7")), 4).toString(), "4-5,12-13");
  });
});

for (const [count, cpus] of Object.entries({ 2: "1-2", 4: "1-3,9", 8: "4-7,12-15" })) {
  test(`spread over cores, A: ${count}`, () =>
    assert.equal(takePacked(a, free(a, "0,8"), Number(count), spread).toString(), cpus));
}
test("spread over cores, A, nothing reserved", () => assert.equal(takePacked(a, a.cpus, 2, spread).toString(), "0-1"));

for (const [count, cpus] of Object.entries({
  2: "1,17",
  6: "1-3,17-19",
  7: "4-7,20-22",
  8: "4-7,20-23",
  10: "1,4-7,17,20-23",
  12: "1-2,4-7,17-18,20-23",
  16: "4-11,20-27",
})) {
  test(`within caches, U: ${count}`, () =>
    assert.equal(takePacked(u, free(u, "0,16"), Number(count), onlyCaches).toString(), cpus));
}

test("no cache has as many: whole cores by number", () => {
  const left = CpuSet.parse("1-3,5-7,9-11,13-15,17-19,21-23,25-27,29-31");
  assert.equal(takePacked(u, left, 8, onlyCaches).toString(), "1-3,5,17-19,21");
});

describe("distributed over NUMA nodes", () => {
  for (const [name, topology, reserved, group, chosen] of [
    ["A", a, "", 1, { 0: "", 5: "0-2,8-9", 8: "0-3,8-11", 10: "0-2,4-6,8-9,12-13" }],
    ["A, whole cores", a, "0,8", 2, { 2: "4,12", 6: "4-6,12-14", 10: "1-2,4-6,9-10,12-14", 12: "1-6,9-14" }],
    ["C", c, "0,16", 1, { 9: "4-6,8-9,20-21,24-25", 16: "4-11,20-27", 20: "4-14,20-22,24-26,28-30" }],
  ] as const) {
    for (const [count, cpus] of Object.entries(chosen)) {
      test(`${name}: ${count}`, () => {
        assert.equal(takeDistributed(topology, free(topology, reserved), Number(count), group).toString(), cpus);
      });
    }
  }

  test("odd threads that make no core do not keep it busy for ever", () => {
    const left = CpuSet.parse("1,2,3,9,5,6,13");
    assert.equal(takeDistributed(a, left, 4, 2).size, 4);
    assert.equal(takeDistributed(a, left, 6, 2).size, 6);
  });

  test("sixteen nodes are looked at within a bound", () => {
    const many = new CpuTopology(madeUpTopology({ sockets: 16, coresPerNode: 8, threads: 2 }));
    assert.equal(takeDistributed(many, many.cpus.without(CpuSet.parse("0,3,128,40-42")), 100, 1).size, 100);
  });
});

test("whatever is asked of whatever machine: as many as asked for, from what is free, or an error", () => {
  const machine = fc.record({
    sockets: fc.integer({ min: 1, max: 3 }),
    nodesPerSocket: fc.integer({ min: 1, max: 3 }),
    coresPerNode: fc.integer({ min: 1, max: 6 }),
    threads: fc.integer({ min: 1, max: 2 }),
    coresPerCache: fc.integer({ min: 1, max: 3 }),
    interleaved: fc.boolean(),
  });
  fc.assert(
    fc.property(machine, fc.infiniteStream(fc.boolean()), fc.nat(40), fc.nat(3), (drawing, taken, count, how) => {
      const topology = new CpuTopology(madeUpTopology(drawing));
      const available = CpuSet.of([...topology.cpus].filter(() => !taken.next().value));
      const take = (): CpuSet => {
        if (how === 3) return takeDistributed(topology, available, count, topology.threadsPerCore);
        return takePacked(topology, available, count, [spread, onlyCaches, undefined][how]);
      };
      if (count > available.size) assert.throws(take, TooFewCpusError);
      else {
        assert.equal(take().size, count);
        assert.ok(take().isWithin(available));
      }
    }),
    { numRuns: 1000 },
  );
});
