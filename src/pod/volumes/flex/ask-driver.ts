import type { SetUpContext } from "../kinds/kind.ts";
import type { DriverAnswer } from "./driver-answer.ts";
import type { FlexDriver, FlexDrivers, KnownDriver } from "./drivers.ts";
import type { FlexCalls } from "./flex-calls.ts";

/** Asks a driver for something; undefined: it leaves that to us. Throws when it fails. */
export type AskDriver = (
  command: string,
  args: readonly string[],
  signal: AbortSignal,
  secrets?: readonly string[],
) => Promise<(DriverAnswer & { readonly status: "Success" }) | undefined>;

/** The driver as it is installed now, and how it is asked. */
export async function askable(
  driver: FlexDriver,
  { drivers, calls }: { readonly drivers: FlexDrivers; readonly calls: FlexCalls },
  progress: SetUpContext["progress"],
  signal: AbortSignal,
): Promise<{ readonly known: KnownDriver; readonly ask: AskDriver }> {
  const known = await drivers.ready(driver, progress, signal);
  const ask: AskDriver = async (command, args, stop, secrets) => {
    if (known.unsupported.has(command)) return undefined;
    const { name, program } = known;
    const answer = await calls.call({ driver: name, program, command, args, secrets, progress }, stop);
    if (answer.status === "Failure") throw new Error(answer.message);
    if (answer.status === "Success") return answer;
    known.unsupported.add(command);
    return undefined;
  };
  return { known, ask };
}
