import { KUBERNETES_VERSION, NODELET_VERSION } from "../../ground/config/index.ts";
import type { CommandIo } from "./io.ts";

export async function versionCommand(_args: readonly string[], io: Pick<CommandIo, "stdout">): Promise<number> {
  io.stdout.write(`nodelet ${NODELET_VERSION}\nKubernetes ${KUBERNETES_VERSION} (the kubelet it replaces)\n`);
  return 0;
}
