const systemBusSocket = "/run/dbus/system_bus_socket";

/** The socket of the system bus: as DBUS_SYSTEM_BUS_ADDRESS says, where it names a unix socket, or where it always is. */
export function systemBusPath(address: string | undefined): string {
  for (const one of (address ?? "").split(";")) {
    const match = /^unix:(?:.*,)?(path|abstract)=([^,]+)/.exec(one);
    if (match?.[2] === undefined) continue;
    // Anything but letters, digits and a few marks is written as %XX.
    const name = match[2].replace(/%([0-9a-fA-F]{2})/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
    return match[1] === "abstract" ? `\0${name}` : name;
  }
  return systemBusSocket;
}
