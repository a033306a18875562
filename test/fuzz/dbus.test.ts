// A bus that says anything at all: no exception, no standstill, and every call ends.
import { rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeMessage } from "../../src/connections/host/dbus/messages.ts";
import { SystemdManager } from "../../src/connections/host/systemd/manager.ts";
import { silentLogger, systemClock } from "../../src/ground/base/index.ts";
import { type FuzzRandom, fuzzTest } from "./fuzzing.ts";

const systemdInterface = "org.freedesktop.systemd1.Manager";

/** Something a bus might say, spoilt in places. */
function utterance(random: FuzzRandom): Buffer {
  const serial = random.below(8) + 1;
  const message = random.pick([
    () => encodeMessage({ type: "return", serial, replySerial: random.below(8), signature: "o", body: ["/job/1"] }),
    () => encodeMessage({ type: "return", serial, replySerial: random.below(8), body: [] }),
    () => {
      const body = [{ signature: "s", value: "252" }];
      return encodeMessage({ type: "return", serial, replySerial: random.below(8), signature: "v", body });
    },
    () =>
      encodeMessage({
        type: "error",
        serial,
        replySerial: random.below(8),
        errorName: "a.b",
        signature: "u",
        body: [1],
      }),
    () => {
      const body = [1, "/job/1", "a.slice", "done"];
      const member = random.pick(["JobRemoved", "Reloading"]);
      return encodeMessage({ type: "signal", serial, interface: systemdInterface, member, signature: "uoss", body });
    },
    () =>
      encodeMessage({ type: "signal", serial, sender: "org.freedesktop.DBus", member: "NameOwnerChanged", body: [] }),
    () => Buffer.from(random.bytes(random.below(200) + 1)),
  ])();
  for (let count = random.below(3) === 0 ? random.below(5) : 0; count > 0; count--) {
    message[random.below(message.length)] = random.below(256);
  }
  return random.below(10) === 0 ? message.subarray(0, random.below(message.length) + 1) : message;
}

fuzzTest("a bus that talks rubbish", async ({ random, goesOn, signal }) => {
  const path = join(tmpdir(), `nodelet-fuzz-bus-${process.pid}`);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
    if (random.below(10) > 0) socket.write(random.pick(["OK 1\r\n", "DATA\r\nOK 1\r\n"]));
    socket.on("data", () => {
      for (let count = random.below(6); count > 0; count--) socket.write(utterance(random));
      if (random.below(8) === 0) socket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  try {
    while (goesOn()) {
      const sides = [{ kind: random.pick(["bus", "direct"] as const), path }];
      const manager = new SystemdManager(sides, { clock: systemClock, log: silentLogger });
      const calls = Promise.allSettled([
        manager.startTransient("a.slice", []),
        manager.setProperties("a.slice", []),
        manager.stop("a.slice"),
      ]);
      await systemClock.sleep(random.below(20), signal).catch(() => undefined);
      manager.close();
      // Hangs here, and so fails by its time limit, if a call has no end.
      await calls;
    }
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => server.close(() => resolve()));
    await rm(path, { force: true });
  }
});
