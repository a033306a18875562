// A CRI server in front of Docker: for our own agent, for any other kubelet, and for crictl.
export { runDockershim } from "./command.ts";
export { runWithShim, splitArguments } from "./in-process.ts";
export { defaultSettings, type ShimSettings } from "./settings.ts";
export { startShim } from "./shim.ts";
