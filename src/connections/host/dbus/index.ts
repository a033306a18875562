// A small D-Bus client: unix sockets, EXTERNAL authentication, calls with deadlines, signals. No introspection.
export { systemBusPath } from "./addresses.ts";
export { BusConnection, type BusReply } from "./connection.ts";
export { BusCallError, BusLostError } from "./errors.ts";
export type { ReceivedMessage } from "./messages.ts";
export type { OpenTransport, TransportListener } from "./transport.ts";
export type { BusValue, BusVariant } from "./values.ts";
