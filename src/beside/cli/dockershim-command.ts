import { defineCommand } from "./define-command.ts";
import type { Command } from "./io.ts";
import { dockershimDescription } from "./table/machine-commands.ts";

/** The flags that were given, by their names; the shim itself says what is wrong with them. */
export type DockershimFlags = {
  readonly [Name in keyof typeof dockershimDescription.options]?: string | undefined;
};

/** CRI in front of Docker is a process of its own, started by `serve`. */
export function dockershimCommand(serve: (flags: DockershimFlags) => Promise<number>): Command {
  return defineCommand(dockershimDescription, async ({ options }) => await serve(options));
}
