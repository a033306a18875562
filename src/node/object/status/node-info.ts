import type { Machine } from "../../../connections/host/index.ts";
import type { NodeSystemInfo } from "../../../ground/model/index.ts";
import type { RuntimeFacts } from "../ports.ts";

export function nodeInfoOf(machine: Machine, runtime: RuntimeFacts, kubeletVersion: string): NodeSystemInfo {
  return {
    machineID: machine.machineId,
    systemUUID: machine.systemUuid,
    bootID: machine.bootId,
    kernelVersion: machine.kernelVersion,
    osImage: machine.osImage,
    containerRuntimeVersion: runtimeVersion(runtime.identity),
    kubeletVersion,
    kubeProxyVersion: "",
    operatingSystem: "linux",
    architecture: machine.architecture,
    ...(machine.swapBytes > 0 && { swap: { capacity: machine.swapBytes } }),
  };
}

/** `containerd://1.7.2`; what a distribution appends to a version is left away. */
function runtimeVersion(identity: RuntimeFacts["identity"]): string {
  const unknown = "Unknown";
  if (identity === undefined) return unknown;
  const numbers = /^\s*v?(\d+(?:\.\d+)+)(.*)$/.exec(identity.version);
  if (numbers === null) return unknown;
  const [, version = "", rest = ""] = numbers;
  const isSemantic = version.split(".").length === 3 && !/(^|\.)0\d/.test(version);
  const extra = isSemantic && /^(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?\s*$/.test(rest) ? rest.trim() : "";
  return `${identity.name}://${version}${extra}`;
}
