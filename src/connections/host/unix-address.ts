import { familyUnix } from "./socket-constants.ts";

const longestSocketPath = 107;

/** A sockaddr_un; an abstract name (`@x`) begins with a NUL byte and has no end marker. */
export function unixAddress(path: string): Buffer {
  const isAbstract = path.startsWith("@");
  const name = Buffer.from(isAbstract ? `\0${path.slice(1)}` : `${path}\0`);
  if (name.length > longestSocketPath + 1) {
    throw new Error(`Socket path "${path}" has ${name.length} bytes; unix sockets allow ${longestSocketPath}`);
  }
  const address = Buffer.alloc(2 + name.length);
  address.writeUInt16LE(familyUnix, 0);
  name.copy(address, 2);
  return address;
}
