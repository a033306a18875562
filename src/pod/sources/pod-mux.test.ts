import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import type { IdentifiedPod, PodEvent, PodSource, PodUid } from "../../ground/model/index.ts";
import type { NotificationMode, PodNotification } from "./notifications.ts";
import { PodMux } from "./pod-mux.ts";

const never = new AbortController().signal;

type Meta = Partial<IdentifiedPod["metadata"]>;
interface Parts {
  readonly meta?: Meta;
  readonly spec?: Partial<IdentifiedPod["spec"]>;
  readonly status?: IdentifiedPod["status"];
}

function pod(uid: string, parts: Parts = {}): IdentifiedPod {
  return {
    metadata: { name: `pod-${uid}`, namespace: "default", uid, ...parts.meta },
    spec: { containers: [{ name: "c", image: "i" }], ...parts.spec },
    status: parts.status ?? { phase: "Pending" },
  };
}

function startMux<Mode extends NotificationMode>(mode: Mode, sources: readonly PodSource[] = ["file", "http", "api"]) {
  const events: { readonly uid: string; readonly event: PodEvent }[] = [];
  const mux = new PodMux(
    { mode, sources },
    {
      clock: new FakeClock(Date.UTC(2026, 0, 2, 3, 4, 5, 67)),
      recordEvent: (of, event) => events.push({ uid: of.metadata.uid, event }),
    },
  );
  return { mux, events };
}

/** Everything that is in the buffer now, as `OP source uid,uid`. */
async function drain(mux: PodMux<NotificationMode>): Promise<readonly PodNotification[]> {
  const all: PodNotification[] = [];
  for (;;) {
    const stop = new AbortController();
    const next = mux.next(stop.signal).catch(() => undefined);
    await settle(1);
    stop.abort();
    const notification = await next;
    if (notification === undefined) return all;
    all.push(notification);
  }
}

function shown(notifications: readonly PodNotification[]): readonly string[] {
  return notifications.map(
    ({ op, source, pods }) => `${op} ${source} ${pods.map(({ metadata }) => metadata.uid).join(",")}`,
  );
}

const deleting = { deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 30 };

for (const { name, before, after, wanted } of [
  { name: "the same again", before: pod("a"), after: pod("a"), wanted: [] },
  {
    name: "a changed spec",
    before: pod("a"),
    after: pod("a", { spec: { containers: [{ name: "c", image: "j" }] } }),
    wanted: ["UPDATE api a"],
  },
  {
    name: "a changed label",
    before: pod("a", { meta: { labels: { k: "1" } } }),
    after: pod("a", { meta: { labels: { k: "2" } } }),
    wanted: ["UPDATE api a"],
  },
  {
    name: "a removed label",
    before: pod("a", { meta: { labels: { k: "1" } } }),
    after: pod("a"),
    wanted: ["UPDATE api a"],
  },
  {
    name: "a foreign annotation",
    before: pod("a"),
    after: pod("a", { meta: { annotations: { k: "1" } } }),
    wanted: ["UPDATE api a"],
  },
  {
    name: "the config.hash annotation, which is not local",
    before: pod("a"),
    after: pod("a", { meta: { annotations: { "kubernetes.io/config.hash": "h" } } }),
    wanted: ["UPDATE api a"],
  },
  {
    name: "local annotations",
    before: pod("a"),
    after: pod("a", {
      meta: {
        annotations: {
          "kubernetes.io/config.mirror": "m",
          "kubernetes.io/config.seen": "s",
          "kubernetes.io/config.source": "file",
        },
      },
    }),
    wanted: [],
  },
  { name: "a deletion mark", before: pod("a"), after: pod("a", { meta: deleting }), wanted: ["DELETE api a"] },
  {
    name: "a shorter grace of a pod being deleted",
    before: pod("a", { meta: deleting }),
    after: pod("a", { meta: { ...deleting, deletionGracePeriodSeconds: 1 } }),
    wanted: ["DELETE api a"],
  },
  {
    name: "a changed label of a pod being deleted",
    before: pod("a", { meta: deleting }),
    after: pod("a", { meta: { ...deleting, labels: { k: "1" } } }),
    wanted: ["DELETE api a"],
  },
  {
    name: "only status",
    before: pod("a"),
    after: pod("a", { status: { phase: "Running" } }),
    wanted: ["RECONCILE api a"],
  },
  {
    name: "status and spec",
    before: pod("a"),
    after: pod("a", { status: { phase: "Running" }, spec: { hostNetwork: true } }),
    wanted: ["UPDATE api a"],
  },
  {
    name: "resourceVersion, generation, owners and finalizers",
    before: pod("a"),
    after: pod("a", {
      meta: {
        resourceVersion: "9",
        generation: 4,
        finalizers: ["f"],
        ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n", uid: "u" }],
      },
    }),
    wanted: [],
  },
  {
    name: "a new uid under the same name",
    before: pod("a", { meta: { name: "n" } }),
    after: pod("b", { meta: { name: "n" } }),
    wanted: ["REMOVE api a", "ADD api b"],
  },
]) {
  test(`classify: ${name}`, async () => {
    const { mux } = startMux("incremental");
    await mux.set("api", [before], never);
    assert.deepEqual(shown(await drain(mux)), ["ADD api a"]);
    await mux.set("api", [after], never);
    assert.deepEqual(shown(await drain(mux)), wanted);
    await mux.set("api", [structuredClone(after)], never);
    assert.deepEqual(shown(await drain(mux)), [], "the same list again changes nothing");
  });
}

for (const { mode, wanted } of [
  {
    mode: "incremental",
    wanted: [
      ["UPDATE api a"],
      ["RECONCILE api a"],
      [],
      ["DELETE api a"],
      ["ADD api c"],
      ["REMOVE api b", "ADD api d"],
      ["REMOVE api a"],
      [],
    ],
  },
  {
    mode: "snapshot-and-updates",
    wanted: [
      ["UPDATE api a"],
      [],
      [],
      ["DELETE api a"],
      ["SET api own,a,b,c"],
      ["SET api own,a,c,d"],
      ["SET api own,c,d"],
      [],
    ],
  },
  {
    mode: "snapshot",
    wanted: [
      ["SET api own,a,b"],
      [],
      [],
      ["SET api own,a,b"],
      ["SET api own,a,b,c"],
      ["SET api own,a,c,d"],
      ["SET api own,c,d"],
      [],
    ],
  },
] as const) {
  test(`${mode}: single changes after a list say what a new list would`, async () => {
    const { mux } = startMux(mode);
    await mux.set("file", [pod("own")], never);
    await mux.set("api", [pod("a"), pod("b", { meta: { name: "same" } })], never);
    await drain(mux);
    const changed = pod("a", { spec: { hostNetwork: true } });
    const running = { ...changed, status: { phase: "Running" } } as const;
    const changes = [
      { type: "put", pod: changed },
      { type: "put", pod: running },
      { type: "put", pod: structuredClone(running) },
      { type: "put", pod: { ...running, metadata: { ...running.metadata, ...deleting } } },
      { type: "put", pod: pod("c") },
      { type: "put", pod: pod("d", { meta: { name: "same" } }) },
      { type: "gone", uid: "a" as PodUid },
      { type: "gone", uid: "a" as PodUid },
    ] as const;
    for (const [index, change] of changes.entries()) {
      await mux.change("api", change, never);
      assert.deepEqual(shown(await drain(mux)), wanted[index], JSON.stringify(change));
    }
  });
}

test("a list after changes is compared with what they made of the list before", async () => {
  const { mux } = startMux("incremental");
  await mux.set("api", [pod("a"), pod("b")], never);
  await mux.change("api", { type: "gone", uid: "a" as PodUid }, never);
  await mux.change("api", { type: "put", pod: pod("c") }, never);
  await drain(mux);
  await mux.set("api", [pod("c"), pod("d")], never);
  assert.deepEqual(shown(await drain(mux)), ["REMOVE api b", "ADD api d"]);
});

test("a status too deep to be compared is one that has changed, and holds up nobody", async () => {
  const { mux } = startMux("incremental");
  const deep = (): IdentifiedPod => ({
    ...pod("a"),
    status: JSON.parse(`${'{"x":'.repeat(50_000)}{}${"}".repeat(50_000)}`),
  });
  await mux.set("api", [deep()], never);
  await drain(mux);
  await mux.change("api", { type: "put", pod: deep() }, never);
  assert.deepEqual(shown(await drain(mux)), ["RECONCILE api a"]);
});

test("a change before the first list that its source stands by is a defect", async () => {
  const { mux } = startMux("incremental");
  const change = { type: "put", pod: pod("a") } as const;
  await assert.rejects(mux.change("api", change, never), /sent a change before its first list/);
  await mux.set("api", [pod("a")], never, { hold: () => undefined });
  await assert.rejects(mux.change("api", change, never), /sent a change before its first list/);
});

test("a pod first seen with a deletion mark is an ADD", async () => {
  const { mux } = startMux("incremental");
  await mux.set("api", [pod("a", { meta: deleting })], never);
  assert.deepEqual(shown(await drain(mux)), ["ADD api a"]);
});

test("an added pod is annotated with its source and when it was first seen", async () => {
  const { mux } = startMux("incremental");
  await mux.set("http", [pod("a", { meta: { annotations: { mine: "1" } } })], never);
  const [change] = await drain(mux);
  assert.deepEqual(change?.pods[0]?.metadata.annotations, {
    mine: "1",
    "kubernetes.io/config.source": "http",
    "kubernetes.io/config.seen": "2026-01-02T03:04:05.067000000Z",
  });
});

test("an update stores spec, labels, generation, status and foreign annotations, and keeps the local ones", async () => {
  const { mux } = startMux("incremental");
  await mux.set("api", [pod("a", { meta: { resourceVersion: "1", annotations: { old: "1" } } })], never);
  await drain(mux);
  const after = pod("a", {
    meta: {
      resourceVersion: "2",
      generation: 7,
      labels: { l: "1" },
      annotations: { new: "1", "kubernetes.io/config.seen": "forged", "kubernetes.io/config.mirror": "m" },
    },
    spec: { hostNetwork: true },
    status: { phase: "Running" },
  });
  await mux.set("api", [after], never);
  const [change] = await drain(mux);
  assert.deepEqual(change?.pods[0], {
    metadata: {
      name: "pod-a",
      namespace: "default",
      uid: "a",
      resourceVersion: "1",
      generation: 7,
      labels: { l: "1" },
      deletionTimestamp: undefined,
      deletionGracePeriodSeconds: undefined,
      annotations: {
        new: "1",
        "kubernetes.io/config.source": "api",
        "kubernetes.io/config.seen": "2026-01-02T03:04:05.067000000Z",
      },
    },
    spec: after.spec,
    status: { phase: "Running" },
  });
});

test("a removed pod is handed on as it was last known, not as a newer object", async () => {
  const { mux } = startMux("incremental");
  await mux.set("api", [pod("a")], never);
  await mux.set("api", [pod("a", { status: { phase: "Running" } })], never);
  await mux.set("api", [], never);
  const last = (await drain(mux)).at(-1);
  assert.equal(last?.op, "REMOVE");
  assert.equal(last?.pods[0]?.status?.phase, "Running");
});

const mixedBefore = [pod("gone"), pod("changed"), pod("doomed"), pod("busy"), pod("calm")];
const mixedAfter = [
  pod("busy", { status: { phase: "Running" } }),
  pod("doomed", { meta: deleting }),
  pod("changed", { spec: { hostNetwork: true } }),
  pod("fresh"),
  pod("calm"),
];

for (const { mode, wanted } of [
  {
    mode: "incremental",
    wanted: ["REMOVE api gone", "ADD api fresh", "UPDATE api changed", "DELETE api doomed", "RECONCILE api busy"],
  },
  {
    mode: "snapshot-and-updates",
    wanted: ["SET api own,busy,doomed,changed,fresh,calm", "UPDATE api changed", "DELETE api doomed"],
  },
  { mode: "snapshot", wanted: ["SET api own,busy,doomed,changed,fresh,calm"] },
] as const) {
  test(`${mode}: everything in one SET comes in order`, async () => {
    const { mux } = startMux(mode);
    await mux.set("file", [pod("own")], never);
    await mux.set("api", mixedBefore, never);
    await drain(mux);
    await mux.set("api", mixedAfter, never);
    assert.deepEqual(shown(await drain(mux)), wanted);
  });
}

for (const { mode, first, update, status } of [
  { mode: "incremental", first: ["ADD file "], update: ["UPDATE file a"], status: ["RECONCILE file a"] },
  { mode: "snapshot-and-updates", first: ["SET file "], update: ["UPDATE file a"], status: [] },
  { mode: "snapshot", first: ["SET file "], update: ["SET file a"], status: [] },
] as const) {
  test(`${mode}: an empty first SET is announced once; updates and status changes`, async () => {
    const { mux } = startMux(mode);
    await mux.set("file", [], never);
    assert.deepEqual(shown(await drain(mux)), first);
    await mux.set("file", [], never);
    assert.deepEqual(shown(await drain(mux)), []);
    await mux.set("file", [pod("a")], never);
    await drain(mux);
    await mux.set("file", [pod("a", { spec: { hostPID: true } })], never);
    assert.deepEqual(shown(await drain(mux)), update);
    await mux.set("file", [pod("a", { spec: { hostPID: true }, status: { phase: "Running" } })], never);
    assert.deepEqual(shown(await drain(mux)), status);
  });
}

test("a duplicate name in one SET is dropped with one event", async () => {
  const { mux, events } = startMux("incremental");
  const list = [pod("a", { meta: { name: "same" } }), pod("b", { meta: { name: "same" } })];
  await mux.set("file", list, never);
  await mux.set("file", list, never);
  assert.deepEqual(shown(await drain(mux)), ["ADD file a"]);
  assert.deepEqual(events, [
    {
      uid: "b",
      event: {
        type: "Warning",
        reason: "FailedValidation",
        message: 'Error validating pod same_default(b) from file due to duplicate pod name "same", ignoring',
      },
    },
  ]);
  await mux.set("file", [list[1] ?? pod("b")], never);
  assert.deepEqual(shown(await drain(mux)), ["REMOVE file a", "ADD file b"], "it takes over once the first is gone");
});

test("a uid that comes twice in one SET is dropped the second time", async () => {
  const { mux, events } = startMux("incremental");
  await mux.set("file", [pod("a", { meta: { name: "one" } }), pod("a", { meta: { name: "two" } })], never);
  const changes = await drain(mux);
  assert.deepEqual(shown(changes), ["ADD file a"]);
  assert.equal(changes[0]?.pods[0]?.metadata.name, "one");
  assert.equal(events.length, 1);
});

test("the same name in another namespace or source is no duplicate", async () => {
  const { mux, events } = startMux("incremental");
  await mux.set(
    "file",
    [pod("a", { meta: { name: "n" } }), pod("b", { meta: { name: "n", namespace: "other" } })],
    never,
  );
  await mux.set("http", [pod("c", { meta: { name: "n" } })], never);
  assert.deepEqual(shown(await drain(mux)), ["ADD file a,b", "ADD http c"]);
  assert.deepEqual(events, []);
});

test("ready only when every configured source delivered and the consumer acknowledged", async () => {
  const { mux } = startMux("incremental", ["file", "http"]);
  await mux.set("file", [pod("a")], never);
  assert.equal(mux.isReady("file"), false);
  mux.acknowledge(await mux.next(never));
  assert.equal(mux.isReady("file"), true);
  assert.equal(mux.allReady(), false);
  assert.deepEqual(
    ["file", "http", "api", undefined].map((origin) => mux.allReadyFor(origin)),
    [true, false, false, false],
    "a pod from a file is wanted by files alone",
  );
  assert.deepEqual(mux.awaited(), ["http"]);
  await mux.set("http", [], never);
  const last = await mux.next(never);
  assert.equal(mux.allReady(), false, "delivered but not acted on");
  mux.acknowledge(last);
  assert.equal(mux.allReady(), true);
});

test("no source configured: ready at once", () => {
  assert.equal(startMux("incremental", []).mux.allReady(), true);
});

test("a slow consumer holds sources back at 50 notifications, and the order survives", async () => {
  const { mux } = startMux("incremental");
  let delivered = 0;
  const sets = (async () => {
    for (let index = 0; index < 60; index++) {
      await mux.set("file", [pod(`a${index}`)], never);
      delivered++;
    }
  })();
  const other = mux.set("http", [pod("h")], never);
  await settle();
  assert.ok(delivered < 30, `${delivered} SETs of two notifications each went in without a consumer`);
  const seen: string[] = [];
  while (seen.length < 120) seen.push(...shown([await mux.next(never)]));
  await Promise.all([sets, other]);
  const ofFile = seen.filter((line) => line.includes("file"));
  const wanted = Array.from({ length: 60 }, (_, index) => [`REMOVE file a${index - 1}`, `ADD file a${index}`]).flat();
  assert.deepEqual(ofFile, wanted.slice(1));
  assert.equal(seen.filter((line) => line === "ADD http h").length, 1);
});

test("aborting stops waiting on either side", async () => {
  const { mux } = startMux("incremental");
  const stop = new AbortController();
  const waiting = mux.next(stop.signal);
  stop.abort(new Error("stopping"));
  await assert.rejects(waiting, /stopping/);
  for (let index = 0; index < 50; index++) await mux.set("file", index % 2 === 0 ? [pod("a")] : [], never);
  const full = new AbortController();
  const blocked = mux.set("file", [pod("b")], full.signal);
  await settle();
  full.abort(new Error("stopping too"));
  await assert.rejects(blocked, /stopping too/);
});
