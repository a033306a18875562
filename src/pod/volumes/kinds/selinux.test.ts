import assert from "node:assert/strict";
import { test } from "node:test";
import { podWithVolumes } from "../../../../test/support/volume-node.ts";
import type { PodSpec } from "../../../ground/model/index.ts";
import type { VolumeSource } from "./kind.ts";
import { contextOption, fileLabel, MountLabels, mountedLabel } from "./selinux.ts";

const defaultLabel = "system_u:object_r:container_file_t:s0";
const usual = { ofOnePod: true, ofMany: false, byChoice: true };
const level = "s0:c1,c2";
const claim = (...accessModes: readonly string[]): VolumeSource => ({
  type: "claim",
  persistent: { metadata: { name: "pv" }, spec: { accessModes } },
  claim: {},
  readOnly: false,
});
const ofOnePod = claim("ReadWriteOncePod");
const expected = "system_u:object_r:container_file_t:s0:c1,c2";
const container = (name: string, seLinuxOptions?: object, mounts = true) => ({
  name,
  image: "x",
  ...(mounts && { volumeMounts: [{ name: "v", mountPath: "/v" }] }),
  ...(seLinuxOptions && { securityContext: { seLinuxOptions } }),
});
const multiple = "system_u:object_r:container_file_t:s0:c3,c4";

for (const { name, spec, source = ofOnePod, gates = usual, label } of [
  { name: "the pod's level", spec: { securityContext: { seLinuxOptions: { level } } }, label: expected },
  {
    name: "a user; type and role are of processes",
    spec: { securityContext: { seLinuxOptions: { user: "me_u", role: "r", type: "spc_t", level } } },
    label: "me_u:object_r:container_file_t:s0:c1,c2",
  },
  { name: "no options", spec: {}, label: undefined },
  { name: "no level", spec: { securityContext: { seLinuxOptions: { type: "spc_t" } } }, label: undefined },
  {
    name: "the container's before the pod's",
    spec: {
      securityContext: { seLinuxOptions: { level: "s0:c9" } },
      containers: [container("a", { level }), container("b", { level: "s0:c8" }, false)],
    },
    label: expected,
  },
  {
    name: "init containers count",
    spec: { initContainers: [container("i", { level: "s0:c3,c4" })], containers: [container("a", { level })] },
    label: new Error(`multiple SELinux labels found: ${expected},${multiple}`),
  },
  {
    name: "containers that differ, on a volume that is not mounted with a label",
    spec: { containers: [container("a", { level: "s0:c3,c4" }), container("b", { level })] },
    source: claim("ReadWriteMany"),
    label: undefined,
  },
  {
    name: "one by one, as the pod wants it",
    spec: { securityContext: { seLinuxOptions: { level }, seLinuxChangePolicy: "Recursive" } },
    label: undefined,
  },
  {
    name: "that wish without its gate",
    spec: { securityContext: { seLinuxOptions: { level }, seLinuxChangePolicy: "Recursive" } },
    gates: { ...usual, byChoice: false },
    label: expected,
  },
  {
    name: "a volume of one node",
    spec: { securityContext: { seLinuxOptions: { level } } },
    source: claim("ReadWriteOnce"),
    label: undefined,
  },
  {
    name: "a volume of one pod, and others",
    spec: { securityContext: { seLinuxOptions: { level } } },
    source: claim("ReadWriteOncePod", "ReadWriteOnce"),
    label: undefined,
  },
  {
    name: "a volume of many with its gate",
    spec: { securityContext: { seLinuxOptions: { level } } },
    source: claim("ReadWriteMany"),
    gates: { ...usual, ofMany: true },
    label: expected,
  },
  {
    name: "no gate at all",
    spec: { securityContext: { seLinuxOptions: { level } } },
    gates: { ofOnePod: false, ofMany: true, byChoice: true },
    label: undefined,
  },
  {
    name: "a level that would be more options of a mount",
    spec: { securityContext: { seLinuxOptions: { level: 's0",suid,x="' } } },
    label: new Error('"system_u:object_r:container_file_t:s0\\",suid,x=\\"" is not an SELinux label'),
  },
  {
    name: "a user that would be more options of a mount",
    spec: { securityContext: { seLinuxOptions: { user: 'u",dev', level } } },
    label: new Error('"u\\",dev:object_r:container_file_t:s0:c1,c2" is not an SELinux label'),
  },
  {
    name: "no claim",
    spec: { securityContext: { seLinuxOptions: { level } } },
    source: { type: "inline", volume: { name: "v" } } as const,
    label: undefined,
  },
] as readonly {
  name: string;
  spec: Partial<PodSpec>;
  source?: VolumeSource;
  gates?: typeof usual;
  label: string | undefined | Error;
}[]) {
  test(`a label to mount with: ${name}`, () => {
    const pod = podWithVolumes([{ name: "v" }], spec);
    const labelOf = (): string | undefined => new MountLabels(defaultLabel, gates).of({ pod, name: "v", source });
    if (label instanceof Error) assert.throws(labelOf, label);
    else assert.equal(labelOf(), label);
  });
}

test("a policy that names no label for files of containers has none to mount with", () => {
  assert.equal(fileLabel({ level }, ""), undefined);
});

test("labels in options are read back", () => {
  const option = contextOption(expected);
  assert.equal(option, 'context="system_u:object_r:container_file_t:s0:c1,c2"');
  assert.equal(mountedLabel(`rw,${option},noatime`.split(",")), expected);
  assert.equal(mountedLabel(["rw", "context=system_u:object_r:container_file_t:s0", "x"]), defaultLabel);
  assert.equal(mountedLabel(["rw", "rootcontext=x", "seclabel"]), undefined);
});
