import { pathFrom } from "./command.ts";
import { defineCommand } from "./define-command.ts";
import { type Command, UsageError } from "./io.ts";
import { apiServerDescription } from "./table/machine-commands.ts";

export interface ApiServerOptions {
  readonly dir: string;
  readonly listen: { readonly host: string; readonly port: number };
  readonly advertise: string | undefined;
  readonly nodes: readonly string[];
  readonly kubeletHost: string | undefined;
  readonly binder: "on" | "off";
}

/** Reads what the local API server is asked for; it is a process of its own, started by `serve`. */
export function apiServerCommand(serve: (options: ApiServerOptions) => Promise<number>): Command {
  return defineCommand(apiServerDescription, async ({ options }, io) => {
    const [, host, port] = /^\[?([^\]]+?)\]?:(\d+)$/.exec(options.listen) ?? [];
    if (host === undefined || Number(port) > 65_535) {
      throw new UsageError(`--listen wants HOST:PORT, found "${options.listen}"`);
    }
    return await serve({
      dir: pathFrom(io, options.dir),
      listen: { host, port: Number(port) },
      advertise: options.advertise,
      nodes: options.node,
      kubeletHost: options["kubelet-host"],
      binder: options.binder,
    });
  });
}
