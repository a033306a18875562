import { access } from "node:fs/promises";
import { join } from "node:path";
import { hasCode, isMissing } from "../../ground/base/index.ts";
import { pathFrom } from "./command.ts";
import { type CommandIo, UsageError } from "./io.ts";
import { LocalClient } from "./local-client.ts";
import { layoutOf } from "./machine/index.ts";
import { defaultStateDir, kubeletRoot } from "./table/shared-options.ts";

/** Asks the agent of this machine; one that is not there is named in the words of a person. */
export async function askAgent<Answer>(
  io: Pick<CommandIo, "cwd">,
  options: { readonly "root-dir": string | undefined },
  ask: (client: LocalClient) => Promise<Answer>,
): Promise<Answer> {
  const socket = await agentSocket(io, options["root-dir"]);
  try {
    return await ask(new LocalClient(socket));
  } catch (error) {
    if (hasCode(error, "EACCES")) throw new Error(`the agent answers root only (${socket}); try again with sudo`);
    if (!hasCode(error, "ENOENT", "ENOTDIR", "ENOTSOCK", "ECONNREFUSED")) throw error;
    throw new Error(`no agent answers at ${socket}; is it running? Give its --root-dir if it is another`);
  }
}

/** The socket of the agent with this root directory, or of the one that this machine most likely has. */
export async function agentSocket(io: Pick<CommandIo, "cwd">, rootDir: string | undefined): Promise<string> {
  return join(await agentRootOf(io, rootDir), "nodelet.sock");
}

/** The same for the root directory itself. */
export async function agentRootOf(io: Pick<CommandIo, "cwd">, rootDir: string | undefined): Promise<string> {
  if (rootDir === "") throw new UsageError("--root-dir wants a directory, found nothing");
  if (rootDir !== undefined) return pathFrom(io, rootDir);
  const { agentRoot } = layoutOf(defaultStateDir);
  return (await mayBeThere(join(agentRoot, "nodelet.sock"))) ? agentRoot : kubeletRoot;
}

/** Whoever may not look there is told that by who asks the agent, not that there is none. */
async function mayBeThere(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    return !isMissing(error);
  }
}
