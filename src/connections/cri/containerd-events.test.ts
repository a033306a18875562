import assert from "node:assert/strict";
import { test } from "node:test";
import { eventFilters, hintFromEnvelope } from "./containerd-events.ts";
import { Envelope } from "./gen/containerd/events.ts";
import {
  ContainerCreate,
  ContainerDelete,
  SandboxCreate,
  SandboxExit,
  SandboxStart,
  TaskExit,
  TaskOOM,
  TaskPaused,
  TaskResumed,
  TaskStart,
} from "./gen/containerd/payloads.ts";

function envelope(type: string, value: Uint8Array, namespace = "k8s.io"): Envelope {
  const event = { typeUrl: `containerd.events.${type}`, value: Buffer.from(value) };
  return Envelope.fromPartial({ namespace, topic: "/any", event });
}

for (const { type, bytes, want } of [
  {
    type: "ContainerCreate",
    bytes: ContainerCreate.encode({ id: "a", image: "i" }).finish(),
    want: { kind: "created", id: "a" },
  },
  { type: "ContainerDelete", bytes: ContainerDelete.encode({ id: "a" }).finish(), want: { kind: "deleted", id: "a" } },
  {
    type: "TaskStart",
    bytes: TaskStart.encode({ containerId: "a", pid: 1 }).finish(),
    want: { kind: "started", id: "a" },
  },
  {
    type: "TaskExit",
    bytes: TaskExit.encode(TaskExit.fromPartial({ containerId: "a", id: "a", exitStatus: 3 })).finish(),
    want: { kind: "stopped", id: "a" },
  },
  {
    type: "TaskExit",
    bytes: TaskExit.encode(TaskExit.fromPartial({ containerId: "a", id: "exec-1" })).finish(),
    want: undefined,
  },
  { type: "TaskOOM", bytes: TaskOOM.encode({ containerId: "a" }).finish(), want: { kind: "oom", id: "a" } },
  { type: "TaskPaused", bytes: TaskPaused.encode({ containerId: "a" }).finish(), want: { kind: "changed", id: "a" } },
  { type: "TaskResumed", bytes: TaskResumed.encode({ containerId: "a" }).finish(), want: { kind: "changed", id: "a" } },
  {
    type: "SandboxCreate",
    bytes: SandboxCreate.encode({ sandboxId: "s" }).finish(),
    want: { kind: "created", id: "s" },
  },
  { type: "SandboxStart", bytes: SandboxStart.encode({ sandboxId: "s" }).finish(), want: { kind: "started", id: "s" } },
  {
    type: "SandboxExit",
    bytes: SandboxExit.encode(SandboxExit.fromPartial({ sandboxId: "s" })).finish(),
    want: { kind: "stopped", id: "s" },
  },
  { type: "ImageCreate", bytes: new Uint8Array(), want: undefined },
] as const) {
  test(`${type} gives ${want === undefined ? "no hint" : `"${want.kind}" of ${want.id}`}`, () => {
    assert.deepEqual(hintFromEnvelope(envelope(type, bytes)), want);
  });
}

test("a type URL with a host part is understood, events of other namespaces are not ours", () => {
  const value = Buffer.from(TaskOOM.encode({ containerId: "a" }).finish());
  const event = { typeUrl: "types.googleapis.com/containerd.events.TaskOOM", value };
  assert.deepEqual(hintFromEnvelope(Envelope.fromPartial({ namespace: "k8s.io", event })), { kind: "oom", id: "a" });
  assert.equal(hintFromEnvelope(Envelope.fromPartial({ namespace: "moby", event })), undefined);
  assert.equal(hintFromEnvelope(Envelope.fromPartial({ namespace: "k8s.io" })), undefined);
});

test("filters name the namespace and quote the topic", () => {
  assert.ok(eventFilters.includes('namespace==k8s.io,topic=="/tasks/exit"'));
});
