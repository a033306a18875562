import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock, Timer } from "../../../ground/base/index.ts";

/**
 * How long a pair of connections may stay silent once one side has ended its direction. From the outside a peer that
 * still listens looks like one that is gone for good, so silence has to decide.
 */
export const halfOpenMs = 10_000;

/**
 * Cuts both sides when one has ended, the other does not follow, and nothing moves any more. What one side has yet to
 * take is waited for, as long as it takes. The result stops the watch.
 */
export function cutSilentHalf(client: Duplex, backend: Socket, clock: Clock): () => void {
  let timer: Timer | undefined;
  const moved = (): number => backend.bytesRead + backend.bytesWritten;
  const waitForSilence = (): void => {
    timer?.cancel();
    const before = moved();
    timer = clock.after(halfOpenMs, () => {
      if (moved() !== before || client.writableLength > 0 || backend.writableLength > 0) return waitForSilence();
      backend.destroy();
      client.destroy();
    });
  };
  for (const side of [client, backend]) {
    if (side.readableEnded) waitForSilence();
    else side.once("end", waitForSilence);
  }
  return () => {
    client.off("end", waitForSilence);
    backend.off("end", waitForSilence);
    timer?.cancel();
  };
}

/**
 * Says its last words, reads past what still comes, and is gone when the peer is or after a while. To close at once would
 * tell a peer that still sends of a broken connection, and it might never see those words.
 */
export function endAndLeave(socket: Duplex, clock: Clock, lastWords = ""): void {
  const timer = clock.after(halfOpenMs, () => socket.destroy());
  socket.once("close", () => timer.cancel());
  socket.end(lastWords);
  socket.resume();
}
