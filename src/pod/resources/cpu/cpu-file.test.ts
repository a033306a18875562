import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { noCpuOptions } from "../../../../test/support/cpu-manager.ts";
import { CpuSet } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import type { RunningContainers } from "../running-containers.ts";
import { decodeCpuFile, encodeCpuFile } from "./cpu-file.ts";
import type { CpuOptions } from "./cpu-settings.ts";
import type { CpuState } from "./cpu-state.ts";
import { restoreCpus } from "./restore-cpus.ts";

function state(shared: string, entries: Readonly<Record<string, Readonly<Record<string, string>>>> = {}): CpuState {
  const exclusive = Object.entries(entries).map(([uid, containers]) => {
    const sets = Object.entries(containers).map(([name, cpus]) => [name, CpuSet.parse(cpus)] as const);
    return [uid as PodUid, new Map(sets)] as const;
  });
  return { shared: CpuSet.parse(shared), exclusive: new Map(exclusive) };
}

describe("the kubelet's own checksums", () => {
  const uid = "11111111-2222-3333-4444-555555555555";
  for (const [policy, content, checksum] of [
    ["none", state(""), 1353318690],
    ["none", state("1-3", { pod: { container1: "4-6", container2: "1-3" } }), 3610638499],
    ["static", state("0-15"), 4220024897],
    ["static", state("0,2-8,10-15", { [uid]: { app: "1,9" } }), 3417408680],
  ] as const) {
    test(`${policy} ${checksum}`, () => {
      const text = encodeCpuFile(policy, content);
      assert.equal(JSON.parse(text).checksum, checksum);
      const read = decodeCpuFile(text);
      assert.equal(encodeCpuFile(read.policy, read.state), text);
    });
  }

  test("the very bytes that the kubelet writes", () => {
    assert.equal(
      encodeCpuFile("static", state("0,2-8,10-15", { [uid]: { app: "1,9" } })),
      `{"policyName":"static","defaultCpuSet":"0,2-8,10-15","entries":{"${uid}":{"app":"1,9"}},"checksum":3417408680}`,
    );
  });
});

describe("what an earlier run has left", () => {
  const uid = "pod-1" as PodUid;
  const settings = (options: Partial<CpuOptions> = {}, reserved = "0,8") => ({
    options: { ...noCpuOptions, ...options },
    reserved: CpuSet.parse(reserved),
  });

  async function restore(
    text: string | undefined,
    {
      running = [] as readonly string[],
      all = "0-15",
      options = {} as Partial<CpuOptions>,
      reserved = "0,8",
      policy = "static",
    } = {},
  ): Promise<string> {
    const found: RunningContainers = {
      areAny: running.length > 0,
      has: (owner, name) => running.includes(`${owner} ${name}`),
      ownerOf: (id) => (id === "id-1" ? { uid, container: "app" } : undefined),
    };
    const restored = await restoreCpus(text, {
      path: "/root/cpu_manager_state",
      allCpus: CpuSet.parse(all),
      settings: policy === "none" ? undefined : settings(options, reserved),
      findRunning: async () => found,
    });
    const file = JSON.parse(encodeCpuFile(policy, restored.state));
    return `${file.defaultCpuSet} ${JSON.stringify(file.entries ?? {})} ${restored.mended ?? ""}`.trim();
  }

  const given = encodeCpuFile("static", state("0,2-8,10-15", { [uid]: { app: "1,9" } }));
  const kept = '0,2-8,10-15 {"pod-1":{"app":"1,9"}}';

  test("nothing: all is free", async () => {
    assert.equal(await restore(undefined), "0-15 {}");
    assert.equal(await restore(undefined, { options: { strictReservation: true } }), "1-7,9-15 {}");
    assert.equal(await restore(undefined, { policy: "none" }), "{}");
  });

  test("what fits is kept", async () => assert.equal(await restore(given), kept));

  test("what people wrote, without a checksum and in any case", async () => {
    assert.equal(await restore('{"policyName":"static","defaultCPUSet":"","checksum":0}'), "0-15 {}");
  });

  test("the old form, by ids of containers: those that are gone need nothing", async () => {
    const text =
      '{"policyName":"static","defaultCpuSet":"0,3-8,11-15","entries":{"id-1":"1,9","id-2":"2,10"},"checksum":0}';
    assert.equal(await restore(text), kept);
  });

  // What does not fit: mended while nobody would lose CPUs, refused when somebody would.
  const prefix = "could not restore state from checkpoint: ";
  const advice =
    ', please drain this node and delete the CPU manager checkpoint file "/root/cpu_manager_state" before restarting Kubelet';
  const fresh = "0-15 {}";
  for (const [what, text, how, mended, problem] of [
    ["damaged", given.replace("1,9", "1,7"), {}, fresh, "checkpoint is corrupted"],
    ["cut off", given.slice(0, 30), {}, fresh, "checkpoint is corrupted"],
    ["empty", "", {}, fresh, "checkpoint is corrupted"],
    [
      "a set that is none",
      '{"policyName":"static","defaultCpuSet":"3-1","checksum":0}',
      {},
      fresh,
      'could not parse default cpu set "3-1": invalid range "3-1" (3 > 1)',
    ],
    [
      "a set of a container that is none",
      '{"policyName":"static","defaultCpuSet":"0","entries":{"u":{"c":"x"}},"checksum":0}',
      {},
      fresh,
      'could not parse cpuset "x" for container "c" in pod "u": "x" is neither a CPU number nor a range such as 0-3',
    ],
    [
      "another policy",
      given,
      { policy: "none" },
      "{}",
      'configured policy "none" differs from state checkpoint policy "static"',
    ],
  ] as const) {
    test(what, async () => {
      // What is told of a mended file needs no advice to delete it.
      const said = what === "another policy" ? `${prefix}${problem}${advice}` : problem;
      assert.equal(await restore(text, how), `${mended} ${said}`);
      await assert.rejects(restore(text, { ...how, running: [`${uid} app`] }), {
        name: "CpuRestoreError",
        message: `start cpu manager error: ${prefix}${problem}${advice}`,
      });
    });
  }

  for (const [what, text, how, mended, problem] of [
    [
      "the reservation has grown over it",
      given,
      { reserved: "0-1,8-9" },
      fresh,
      'not all reserved cpus: "0-1,8-9" are present in defaultCpuSet: "0,2-8,10-15"',
    ],
    [
      "a CPU of it is offline",
      given,
      { all: "0-8,10-15" },
      "0-8,10-15 {}",
      `current set of available CPUs "0-8,10-15" doesn't match with CPUs in state "0-15"`,
    ],
    [
      "two have the same",
      encodeCpuFile("static", state("0,2-8,10-14", { [uid]: { app: "1,9" }, other: { app: "9,15" } })),
      { all: "0-14" },
      '0,2-8,10-14 {"pod-1":{"app":"1,9"}}',
      `current set of available CPUs "0-14" doesn't match with CPUs in state "0-15"`,
    ],
    [
      "it is reserved by now",
      encodeCpuFile("static", state("", { [uid]: { app: "0" } })),
      {},
      fresh,
      "default cpuset cannot be empty",
    ],
  ] as const) {
    test(`${what}: let go, unless it runs there`, async () => {
      assert.equal(await restore(text, how), `${mended} ${problem}`);
      const running = what === "two have the same" ? "other app" : `${uid} app`;
      await assert.rejects(restore(text, { ...how, running: [running, "other app"] }), {
        message: `start cpu manager error: ${problem}`,
      });
    });
  }

  for (const [what, text, how, mended] of [
    ["from none to static", encodeCpuFile("none", state("")), {}, fresh],
    ["a CPU that nobody has is offline", given, { all: "0-6,8-15" }, '0,2-6,8,10-15 {"pod-1":{"app":"1,9"}}'],
    ["more CPUs than before", given, { all: "0-19" }, '0,2-8,10-19 {"pod-1":{"app":"1,9"}}'],
    [
      "a strict reservation from now on",
      given,
      { options: { strictReservation: true } },
      '2-7,10-15 {"pod-1":{"app":"1,9"}}',
    ],
    ["the reservation has grown beside it", given, { reserved: "0,2,8,10" }, kept],
    ["shared and not", encodeCpuFile("static", state("0-15", { [uid]: { app: "1,9" } })), {}, kept],
  ] as const) {
    test(`${what}: mended though it runs`, async () => {
      const restored = await restore(text, { ...how, running: [`${uid} app`] });
      assert.ok(restored.startsWith(mended), restored);
    });
  }

  test("everything is given away, which a strict reservation allows", async () => {
    const all = encodeCpuFile("static", state("", { [uid]: { app: "1-7,9-15" } }));
    assert.equal(await restore(all, { options: { strictReservation: true } }), '{"pod-1":{"app":"1-7,9-15"}}');
  });
});
