import { stat } from "node:fs/promises";
import { type Clock, loadedPart } from "../../../ground/base/index.ts";
import { systemBusPath } from "../dbus/index.ts";
import type { Logind } from "./logind.ts";

/** The way to the logind of a machine. */
export interface LogindAccess {
  /** Why nobody can be there; undefined: somebody may be. */
  absence(): Promise<string | undefined>;
  open(clock: Clock, signal: AbortSignal): Promise<Logind>;
}

/** `busAddress` is DBUS_SYSTEM_BUS_ADDRESS. */
export function logindAccess(
  busAddress: string | undefined,
  dropInDirectory = "/etc/systemd/logind.conf.d",
): LogindAccess {
  const socketPath = systemBusPath(busAddress);
  return {
    async absence() {
      if (socketPath.startsWith("\0")) return undefined;
      const found = await stat(socketPath).catch(() => undefined);
      return found?.isSocket() === true ? undefined : `there is no system bus at ${socketPath}`;
    },
    async open(clock, signal) {
      // Only now: most agents never speak to it.
      const { Logind } = await loadedPart(import("./logind.ts"));
      return await Logind.open({ socketPath, dropInDirectory }, clock, signal);
    },
  };
}
