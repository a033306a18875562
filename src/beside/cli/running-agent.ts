import { join } from "node:path";
import { hasCode, isThere } from "../../ground/base/index.ts";
import { defaultStateDir } from "./command.ts";
import { LocalClient } from "./local-client.ts";
import { layoutOf } from "./machine/index.ts";

const kubeletRoot = "/var/lib/kubelet";

/** For the usage of commands that ask a running agent. */
export const rootDirUsage = `  --root-dir DIR   the agent's root directory (default: that of "nodelet up" if it runs, else ${kubeletRoot})
`;

/** Asks the agent of this machine; one that is not there is named in the words of a person. */
export async function askAgent<Answer>(
  rootDir: string | undefined,
  ask: (client: LocalClient) => Promise<Answer>,
): Promise<Answer> {
  const socket = join(rootDir ?? (await defaultRoot()), "nodelet.sock");
  try {
    return await ask(new LocalClient(socket));
  } catch (error) {
    if (!hasCode(error, "ENOENT", "ECONNREFUSED")) throw error;
    throw new Error(`no agent answers at ${socket}; is it running? Give its --root-dir if it is another`);
  }
}

async function defaultRoot(): Promise<string> {
  const { agentRoot } = layoutOf(defaultStateDir);
  return (await isThere(join(agentRoot, "nodelet.sock"))) ? agentRoot : kubeletRoot;
}
