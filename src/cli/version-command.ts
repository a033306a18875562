import { KUBERNETES_VERSION, NODELET_VERSION } from "../config/index.ts";
import type { Command } from "./io.ts";

export const versionCommand: Command = async (_args, io) => {
  io.stdout.write(`nodelet ${NODELET_VERSION}\nKubernetes ${KUBERNETES_VERSION} (the kubelet it replaces)\n`);
  return 0;
};
