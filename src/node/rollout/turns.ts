import type { InvalidConfig } from "../../ground/config/index.ts";
import type { TurnStart } from "./beginning.ts";
import type { ConfigKeeper } from "./config-keeper.ts";
import type { ReadVersion } from "./version.ts";

export type TurnOutcome =
  | { readonly kind: "stop" }
  | { readonly kind: "begin anew" }
  | { readonly kind: "failed"; readonly error: unknown };

export type ProcessOutcome =
  | { readonly kind: "stopped" }
  | { readonly kind: "failed" }
  | { readonly kind: "invalid"; readonly loaded: InvalidConfig };

/** Runs one turn of the agent after the other, each with the configuration that is due, for as long as the process lives. */
export async function runTurns(
  keeper: ConfigKeeper,
  files: ReadVersion,
  run: (start: TurnStart & { readonly kind: "turn" }) => Promise<TurnOutcome>,
): Promise<ProcessOutcome> {
  for (let isProcessStart = true; ; isProcessStart = false) {
    const start = await keeper.begin(files, isProcessStart);
    if (start.kind === "invalid") return start;
    const outcome = await run(start);
    switch (outcome.kind) {
      case "stop":
        await keeper.ended(true);
        return { kind: "stopped" };
      case "begin anew":
        await keeper.ended(false);
        break;
      case "failed":
        if ((await keeper.failed(outcome.error)) === "give up") return { kind: "failed" };
    }
  }
}
