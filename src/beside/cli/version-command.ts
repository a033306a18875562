import { KUBERNETES_VERSION, NODELET_VERSION } from "../../ground/config/index.ts";
import { printAnswer } from "./answer.ts";
import { defineCommand } from "./define-command.ts";
import { versionDescription } from "./table/nodelet-commands.ts";

export const versionCommand = defineCommand(versionDescription, async ({ options }, io) => {
  const answer = { nodelet: NODELET_VERSION, kubernetes: KUBERNETES_VERSION };
  printAnswer(io, options, "Version", answer, () => {
    return `nodelet ${NODELET_VERSION}\nKubernetes ${KUBERNETES_VERSION} (the kubelet it replaces)\n`;
  });
  return 0;
});
