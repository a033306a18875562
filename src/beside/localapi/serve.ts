import { resolve } from "node:path";
import { parseArgs } from "node:util";
import {
  type Clock,
  explain,
  LinkedSignal,
  type LogWriter,
  messageOf,
  TaskScope,
  untilAborted,
} from "../../ground/base/index.ts";
import { writeClientFiles } from "./client-files.ts";
import { startLocalApi } from "./start.ts";

/** The process as the server needs it. */
export interface ServerProcess {
  readonly cwd: string;
  readonly clock: Clock;
  readonly logWriter: LogWriter;
  /** Writes to stdout. */
  readonly print: (text: string) => unknown;
}

const usage = `usage: nodelet api-server --dir DIR [--listen HOST:PORT] [--advertise ADDRESS] [--node NAME]...
                          [--kubelet-host ADDRESS] [--binder on|off]
A small Kubernetes API server for one machine. Writes DIR/admin.kubeconfig, DIR/ca.crt and, for each --node,
DIR/node-NAME.kubeconfig; serves until SIGTERM.
  --dir DIR              where objects, keys and certificates are kept; made when absent, for root alone
  --listen HOST:PORT     (default 127.0.0.1:6443)
  --advertise ADDRESS    how clients reach the server, when HOST stands for all addresses
  --node NAME            a node that shall have credentials; may be repeated
  --kubelet-host ADDRESS call every kubelet here, whatever address its node tells
  --binder on|off        whether pods without a node are given one (default on)
`;

interface ServeOptions {
  readonly dir: string;
  readonly listen: { readonly host: string; readonly port: number };
  readonly advertise: string | undefined;
  readonly nodes: readonly string[];
  readonly kubeletHost: string | undefined;
  readonly binder: "on" | "off";
}

/** `nodelet api-server`: serves until `stop` is aborted; the result is the exit code. */
export async function runApiServer(
  args: readonly string[],
  process: ServerProcess,
  stop: AbortSignal,
): Promise<number> {
  const log = process.logWriter.logger("localapi");
  const options = readOptions(args, process.cwd);
  switch (options) {
    case "help":
      process.print(usage);
      return 0;
    default:
      if (typeof options !== "string") break;
      process.logWriter.plain(`nodelet api-server: ${options}\n${usage}`);
      return 2;
  }
  const { dir, listen, advertise, nodes, kubeletHost, binder } = options;
  try {
    await using scope = new TaskScope();
    const { clock } = process;
    const api = await startLocalApi({
      ...{ dir, listen, clock, log, scope, binder },
      ...(advertise !== undefined && { advertise }),
      ...(kubeletHost !== undefined && { kubeletHost }),
    });
    await writeClientFiles(dir, api, nodes);
    log.info("Serving the Kubernetes API", { url: api.url, dir });
    using ending = new LinkedSignal(stop, api.failed);
    await untilAborted(ending.signal);
    const { aborted: hasFailed, reason } = api.failed;
    await api.stop();
    if (!stop.aborted && hasFailed) throw reason;
    return 0;
  } catch (error) {
    log.error("command failed", new Error(explain(error), { cause: error }));
    return 1;
  }
}

/** The options, or what is wrong with them. */
function readOptions(args: readonly string[], cwd: string): ServeOptions | "help" | string {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        dir: { type: "string" },
        listen: { type: "string", default: "127.0.0.1:6443" },
        advertise: { type: "string" },
        node: { type: "string", multiple: true, default: [] },
        "kubelet-host": { type: "string" },
        binder: { type: "string", default: "on" },
        help: { type: "boolean", short: "h", default: false },
      },
      strict: true,
    });
    if (values.help) return "help";
    const { dir, binder, advertise, node: nodes } = values;
    if (dir === undefined) return "--dir is missing";
    if (binder !== "on" && binder !== "off") return `--binder wants on or off, found "${binder}"`;
    const [, host, port] = /^\[?([^\]]+?)\]?:(\d+)$/.exec(values.listen) ?? [];
    if (host === undefined || Number(port) > 65_535) return `--listen wants HOST:PORT, found "${values.listen}"`;
    const listen = { host, port: Number(port) };
    return { dir: resolve(cwd, dir), listen, advertise, nodes, kubeletHost: values["kubelet-host"], binder };
  } catch (error) {
    return messageOf(error);
  }
}
