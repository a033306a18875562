import { type RunTool, ToolError } from "../../../connections/host/index.ts";
import type { IscsiDisk } from "./iscsi-disk.ts";

// What iscsiadm ends with, by its manual: there is a session, there is none, there is no such record.
const sessionExists = 15;
const sessionNotFound = 2;
const nothingFound = 21;

const discoveryKeys = ["username", "password", "username_in", "password_in"].map(
  (key) => `discovery.sendtargets.auth.${key}`,
);
const sessionKeys = ["username", "password", "username_in", "password_in"].map((key) => `node.session.auth.${key}`);

export type ChapSecrets = Readonly<Record<string, string>>;

/** The transport of an interface; empty when it does not say. */
export async function transportOf({ configuredInterface }: IscsiDisk, run: RunTool, signal: AbortSignal) {
  return transportIn(await show(configuredInterface, run, signal));
}

export function transportIn(shown: string): string {
  const transport = /^iface\.transport_name = (.*)$/m.exec(shown)?.[1] ?? "";
  return transport === "<empty>" ? "tcp" : transport;
}

/** Settings of an interface that a copy of it gets; its name is its own. */
export function settingsIn(shown: string): ReadonlyMap<string, string> {
  const settings = new Map<string, string>();
  for (const line of shown.split("\n")) {
    const [, name, value] = /^(iface\.\S+) = (\S+)$/.exec(line) ?? [];
    if (name === undefined || value === undefined || value === "<empty>") continue;
    if (name !== "iface.iscsi_ifacename") settings.set(name, value);
  }
  return settings;
}

/** A volume with an initiator's name of its own has an interface of its own, like the one it names otherwise. */
export async function copyInterface(disk: IscsiDisk, run: RunTool, signal: AbortSignal): Promise<void> {
  const shown = await show(disk.configuredInterface, run, signal);
  const settings = new Map([...settingsIn(shown), ["iface.initiatorname", disk.initiatorName]]);
  const iface = ["-m", "iface", "-I", disk.interface];
  await run("iscsiadm", [...iface, "-o", "new"], signal).catch(unless(sessionExists));
  for (const [name, value] of [...settings].sort(([a], [b]) => (a < b ? -1 : 1))) {
    try {
      await run("iscsiadm", [...iface, "-o", "update", "-n", name, "-v", value], signal);
    } catch (error) {
      signal.throwIfAborted();
      // Half a copy would be taken for a whole one.
      await removeInterface(disk.interface, run, signal).catch(() => {});
      throw error;
    }
  }
}

export async function removeInterface(name: string, run: RunTool, signal: AbortSignal): Promise<void> {
  await run("iscsiadm", ["-m", "iface", "-I", name, "-o", "delete"], signal).catch(
    unless(nothingFound, sessionNotFound),
  );
}

/** Finds the target at a portal and begins a session with it. */
export async function beginSession(
  disk: IscsiDisk,
  portal: string,
  secrets: ChapSecrets,
  run: RunTool,
  signal: AbortSignal,
): Promise<void> {
  const discovery = ["-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I", disk.interface];
  const node = ["-m", "node", "-p", portal, "-T", disk.iqn, "-I", disk.interface];
  const update = (record: readonly string[], name: string, value: string): Promise<string> =>
    run("iscsiadm", [...record, "-o", "update", "-n", name, "-v", value], signal);
  const quietly = (args: readonly string[]): Promise<unknown> =>
    run("iscsiadm", args, signal).catch(() => signal.throwIfAborted());
  await quietly([...discovery, "-o", "new"]);
  if (disk.chapDiscovery) {
    await update(discovery, "discovery.sendtargets.auth.authmethod", "CHAP");
    await tellSecrets(discoveryKeys, secrets, (name, value) => update(discovery, name, value));
  }
  try {
    await run("iscsiadm", [...discovery, "--discover"], signal);
  } catch (error) {
    await quietly([...discovery, "-o", "delete"]);
    throw new Error(`iscsi: failed to sendtargets to portal ${portal}`, { cause: error });
  }
  // Else the kernel would find every disk of the target, also those that are none of this node's business.
  await update(node, "node.session.scan", "manual").catch(() => signal.throwIfAborted());
  if (disk.chapSession) {
    await update(node, "node.session.auth.authmethod", "CHAP");
    await tellSecrets(sessionKeys, secrets, (name, value) => update(node, name, value));
  }
  try {
    await run("iscsiadm", [...node, "--login"], signal).catch(unless(sessionExists));
  } catch (error) {
    signal.throwIfAborted();
    await quietly([...node, "-o", "delete"]);
    throw new Error(`iscsi: failed to attach disk`, { cause: error });
  }
  // A node that boots must not wait for it.
  const record = ["-m", "node", "-p", portal, "-T", disk.iqn];
  await update(record, "node.startup", "manual").catch(() => signal.throwIfAborted());
}

/** Ends the session by this interface, or by any; there need not be one. */
export async function endSession(
  { portal, iqn, iface }: { readonly portal: string; readonly iqn: string; readonly iface: string | undefined },
  run: RunTool,
  signal: AbortSignal,
): Promise<void> {
  const record = ["-m", "node", "-p", portal, "-T", iqn];
  const by = iface === undefined ? [] : ["-I", iface];
  const done = unless(nothingFound, sessionNotFound);
  await run("iscsiadm", [...record, "--logout", ...by], signal).catch(done);
  await run("iscsiadm", [...record, "-o", "delete", ...by], signal).catch(done);
}

/** The error of the tool has its arguments in it, and they are the secrets; so it is not passed on. */
async function tellSecrets(
  keys: readonly string[],
  secrets: ChapSecrets,
  tell: (name: string, value: string) => Promise<unknown>,
): Promise<void> {
  for (const key of keys) {
    const value = secrets[key];
    if (value === undefined || value === "") continue;
    try {
      await tell(key, value);
    } catch (error) {
      if (!(error instanceof ToolError)) throw error;
      throw new Error(`iscsi: failed to update ${key}: ${error.output.replaceAll(value, "***")}`);
    }
  }
}

function show(name: string, run: RunTool, signal: AbortSignal): Promise<string> {
  return run("iscsiadm", ["-m", "iface", "-I", name, "-o", "show"], signal);
}

/** Lets these ends of the tool pass for a good one. */
function unless(...exitCodes: readonly number[]): (error: unknown) => void {
  return (error) => {
    if (error instanceof ToolError && error.exitCode !== undefined && exitCodes.includes(error.exitCode)) return;
    throw error;
  };
}
