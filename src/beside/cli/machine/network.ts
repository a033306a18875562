import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { ifThere } from "../../../ground/base/index.ts";
import { CommandError, run } from "./command.ts";
import { removalScript } from "./iptables.ts";
import type { MachineLayout } from "./layout.ts";

const cniPluginDirs = ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"];
// libcni writes here whatever its caller configures; containerd 1.6 offers no setting for it.
const cniResultsDir = "/var/lib/cni/results";

/** Where this machine has the CNI plugins. */
export async function findCniPlugins(): Promise<string> {
  for (const directory of cniPluginDirs)
    if ((await ifThere(readdir(directory), [])).includes("bridge")) return directory;
  throw new Error(
    `no CNI plugins: looked in ${cniPluginDirs.join(", ")}; install them with "apt-get install containernetworking-plugins"`,
  );
}

/** A bridge with a private subnet, addresses out for the pods, and host ports into them. */
export function cniConfig(layout: MachineLayout, subnet: string): object {
  return {
    cniVersion: "0.4.0",
    name: layout.network,
    plugins: [
      {
        type: "bridge",
        bridge: layout.bridge,
        isGateway: true,
        ipMasq: true,
        hairpinMode: true,
        ipam: {
          type: "host-local",
          dataDir: layout.cniIpamDir,
          ranges: [[{ subnet }]],
          routes: [{ dst: "0.0.0.0/0" }],
        },
      },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  };
}

export async function writeCniConfig(layout: MachineLayout, subnet: string): Promise<void> {
  await mkdir(layout.cniConfDir, { recursive: true });
  const text = `${JSON.stringify(cniConfig(layout, subnet), undefined, 2)}\n`;
  await writeFile(join(layout.cniConfDir, "10-nodelet.conflist"), text);
}

/** The n-th of 256 subnets of 1022 pods each, 10.212.0.0/22 to 10.215.252.0/22. */
export function subnetNumber(n: number): string {
  return `10.${212 + Math.floor(n / 64)}.${(n % 64) * 4}.0/22`;
}

/** A subnet that no interface or route of this machine uses; `start` spreads machines over the range. */
export async function chooseSubnet(start: number): Promise<string> {
  const taken = [...interfaceAddresses(), ...(await routeDestinations())];
  // The first half of the range is left to the tests.
  for (let step = 0; step < 128; step++) {
    const subnet = subnetNumber(128 + ((start + step) % 128));
    if (!taken.some((address) => isInside(address, subnet))) return subnet;
  }
  throw new Error("no free subnet for pods: all of 10.214.0.0 to 10.215.255.255 is in use by interfaces or routes");
}

function interfaceAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => address));
}

async function routeDestinations(): Promise<readonly string[]> {
  const lines = (await readFile("/proc/net/route", "utf8")).trim().split("\n").slice(1);
  return lines.map((line) => {
    const hex = line.split(/\s+/)[1] ?? "";
    return [6, 4, 2, 0].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)).join(".");
  });
}

function isInside(address: string, subnet: string): boolean {
  return toNumber(address) >>> 10 === toNumber(subnet.split("/")[0] ?? "") >>> 10;
}

function toNumber(address: string): number {
  return address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
}

/** Takes away interfaces, iptables rules and cached results of the machine's pods. Call when no pod runs any more. */
export async function removeNetwork(layout: MachineLayout): Promise<void> {
  await removeInterfaces(layout.bridge);
  for (const family of ["iptables", "ip6tables"]) await removeRules(family, layout.network);
  await removeCachedResults(layout.network);
}

async function removeInterfaces(bridge: string): Promise<void> {
  // The kernel removes a dead pod's interface some time later; by then the bridge's name may be in use again.
  for (const port of await ifThere(readdir(`/sys/class/net/${bridge}/brif`), [])) {
    await run("ip", ["link", "delete", port]).catch(ignoreAbsentLink);
  }
  await run("ip", ["link", "delete", bridge]).catch(ignoreAbsentLink);
}

/** "Cannot find device" when it was gone before, "No such device" when it goes at the same moment. */
function ignoreAbsentLink(error: unknown): void {
  if (!(error instanceof CommandError && /Cannot find device|No such device/.test(error.stderr))) throw error;
}

async function removeRules(family: string, network: string): Promise<void> {
  let saved: string;
  try {
    saved = await run(`${family}-save`, ["-t", "nat"]);
  } catch (error) {
    // Without the program or the kernel's table there are no rules to remove.
    if (error instanceof CommandError) return;
    throw error;
  }
  const script = removalScript(saved, network);
  if (script !== undefined) await run(`${family}-restore`, ["--noflush", "-w", "10"], { input: script });
}

async function removeCachedResults(network: string): Promise<void> {
  const names = await ifThere(readdir(cniResultsDir), []);
  const prefix = `${network}-`;
  const ids = names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length).split("-")[0]);
  // The loopback interface of the same pods is cached under a name that all networks share.
  for (const name of names) {
    const ours = name.startsWith(prefix) || ids.some((id) => id !== undefined && name === `cni-loopback-${id}-lo`);
    if (ours) await rm(join(cniResultsDir, name), { force: true });
  }
}
