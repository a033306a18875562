import { networkInterfaces } from "node:os";

/** Where this machine reaches itself: by IPv4, as all programs expect, or by IPv6 on one that has no other. */
export type Loopback = "127.0.0.1" | "::1";

export function loopbackOf(
  interfaces: Pick<ReturnType<typeof networkInterfaces>, string> = networkInterfaces(),
): Loopback {
  const own = Object.values(interfaces).flatMap((addresses) => (addresses ?? []).map(({ address }) => address));
  const found = (["127.0.0.1", "::1"] as const).find((address) => own.includes(address));
  if (found !== undefined) return found;
  throw new Error(
    'this machine can\'t reach itself: it has neither 127.0.0.1 nor ::1; bring them up with "ip link set lo up"',
  );
}

/** As it stands before a port. */
export function hostPort(host: Loopback, port: number): string {
  return host === "::1" ? `[::1]:${port}` : `${host}:${port}`;
}
