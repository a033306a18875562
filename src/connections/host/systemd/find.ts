import type { Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { type Clock, type Logger, loadedPart, mapAtMost } from "../../../ground/base/index.ts";
import { systemBusPath } from "../dbus/index.ts";
import type { SystemdManager, SystemdSocket } from "./manager.ts";

/** The systemd that runs this machine; undefined when none does. `busAddress` is DBUS_SYSTEM_BUS_ADDRESS. */
export async function findSystemd(
  busAddress: string | undefined,
  ports: { readonly clock: Clock; readonly log: Logger },
): Promise<SystemdManager | undefined> {
  const sockets = await systemdSockets(busAddress);
  if (sockets.length === 0) return undefined;
  // Only now: most agents never speak to systemd.
  const { SystemdManager } = await loadedPart(import("./manager.ts"));
  return new SystemdManager(sockets, ports);
}

/** Where systemd can be spoken to, the best first; `root` lets tests look at a made-up machine. */
export async function systemdSockets(busAddress: string | undefined, root = ""): Promise<readonly SystemdSocket[]> {
  // What systemd itself tells by: the directory is made by a systemd that is process 1, and by nobody else.
  if (!(await statOf(`${root}/run/systemd/system`))?.isDirectory()) return [];
  const sockets: readonly SystemdSocket[] = [
    { kind: "bus", path: systemBusPath(busAddress) },
    { kind: "direct", path: "/run/systemd/private" },
  ];
  const isThere = await mapAtMost(sockets.length, sockets, async ({ path }) => {
    return path.startsWith("\0") || (await statOf(`${root}${path}`))?.isSocket() === true;
  });
  return sockets.filter((_, index) => isThere[index]);
}

async function statOf(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch {
    return undefined;
  }
}
