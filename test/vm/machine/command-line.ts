import { connect } from "node:net";
import { systemClock } from "../../../src/ground/base/index.ts";

export interface CommandResult {
  readonly code: number;
  readonly output: string;
}

/** The machine did not answer a command: it is booting, hung or gone. */
export class NoAnswerError extends Error {
  override readonly name = "NoAnswerError";
}

/**
 * Has the guest run a shell command. What is spoken is told at the other end, in `guest-files.ts`.
 */
export async function runInGuest(
  port: number,
  command: string,
  input: Buffer,
  withinMs: number,
): Promise<CommandResult> {
  return await new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
    const chunks: Buffer[] = [];
    const fail = (why: string): void => {
      timer.cancel();
      socket.destroy();
      const said = Buffer.concat(chunks).toString().slice(-2000);
      reject(new NoAnswerError(`the machine ${why} in the middle of: ${command}\n${said}`));
    };
    const timer = systemClock.after(withinMs, () => fail(`gave no answer within ${withinMs / 1000} s`));
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.on("error", (error) => fail(`cut the connection (${error.message})`));
    socket.on("end", () => {
      const answer = Buffer.concat(chunks);
      const nul = answer.lastIndexOf(0);
      if (nul < 0) return fail("cut the connection");
      timer.cancel();
      socket.destroy();
      resolve({ code: Number(answer.subarray(nul + 1).toString()), output: answer.subarray(0, nul).toString() });
    });
    socket.write(`${Buffer.from(command).toString("hex")}\n`);
    socket.end(input);
  });
}
