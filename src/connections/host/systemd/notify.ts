import { loadSyscalls } from "../syscalls.ts";

/** What systemd may be told through NOTIFY_SOCKET. */
export interface ServiceNotice {
  readonly ready?: true;
  readonly stopping?: true;
  readonly watchdog?: true;
  /** One line for people, shown by `systemctl status`. */
  readonly status?: string;
}

export async function notifySystemd(notifySocket: string, notice: ServiceNotice): Promise<void> {
  if (!/^[/@]/.test(notifySocket)) {
    throw new Error(`NOTIFY_SOCKET "${notifySocket}" is neither a path nor an abstract name (@name)`);
  }
  const lines: string[] = [];
  if (notice.ready) lines.push("READY=1");
  if (notice.stopping) lines.push("STOPPING=1");
  if (notice.watchdog) lines.push("WATCHDOG=1");
  if (notice.status !== undefined) lines.push(`STATUS=${notice.status.replaceAll("\n", " ")}`);
  (await loadSyscalls()).sendDatagram(notifySocket, lines.join("\n"));
}
