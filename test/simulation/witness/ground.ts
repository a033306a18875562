import { cdiName } from "../neighbours/claims.ts";
import { deviceVariable } from "../neighbours/devices.ts";
import type { Scene } from "./scene.ts";
import { type ContainerRecord, nameOf, type SeenContainer } from "./seen-pods.ts";

/** What a container stands on must be there when it starts: its devices, claims, mounts and cgroup. */
export function checkGround(scene: Scene, record: ContainerRecord, found: SeenContainer): void {
  const { simulation, fail } = scene;
  const { config, sandbox } = record;
  const { name, hasDevice, claim } = found.plan;
  const { disk } = simulation.machine;
  if (hasDevice) checkDevice(scene, record, found);
  if (claim !== undefined) checkClaim(scene, record, claim);
  for (const { hostPath } of config.mounts) {
    if (!disk.exists(hostPath)) fail(`container ${name} is started without its mount ${hostPath}`);
    if (hostPath.includes("/kubernetes.io~csi/") && !disk.isMounted(hostPath))
      fail(`container ${name} is started, but no driver has mounted ${hostPath}`);
  }
  const cgroup = sandbox.config.linux?.cgroupParent ?? "";
  if (!disk.exists(`/sys/fs/cgroup${cgroup}`)) fail(`container ${name} is started without its cgroup ${cgroup}`);
}

/** A claim is needed as long as its container runs. */
export function onReturn({ simulation, pods, fail }: Scene, claim: string): void {
  for (const record of simulation.runtime.fake.containers()) {
    const name = nameOf(record);
    if (record.life.step === "running" && pods.withContainer(name)?.plan.claim === claim)
      fail(`claim ${claim} is given back while its container ${name} runs`);
  }
}

/** It has one, which is its own as long as its pod is there. */
function checkDevice({ simulation, fail }: Scene, record: ContainerRecord, { seen, plan }: SeenContainer): void {
  const own = deviceOf(record);
  if (own === undefined) fail(`container ${plan.name} is started without its device`);
  const other = simulation.runtime.fake
    .containers()
    .find((each) => each !== record && each.life.step === "running" && deviceOf(each) === own);
  if (other !== undefined) fail(`device ${own} of ${plan.name} is that of ${nameOf(other)}, too`);
  if (seen.device !== undefined && seen.device !== own && !seen.hasLostSandbox)
    fail(`container ${plan.name} had device ${seen.device}, and has ${own}`);
  seen.device = own;
}

function checkClaim({ simulation, fail }: Scene, record: ContainerRecord, claim: string): void {
  const name = nameOf(record);
  if (!record.config.CDIDevices.some((device) => device.name === cdiName(claim)))
    fail(`container ${name} is started without its claim ${claim}`);
  if (![...simulation.claims.prepared.values()].includes(claim))
    fail(`container ${name} is started, but its claim ${claim} is not prepared`);
}

function deviceOf({ config }: ContainerRecord): string | undefined {
  return config.envs.find(({ key }) => String(key) === deviceVariable)?.value.toString();
}
