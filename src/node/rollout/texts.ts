import type { RecordNodeEvent } from "../../ground/model/index.ts";
import { type ConfigVersion, describeSource } from "./version.ts";

type NodeEvent = Parameters<RecordNodeEvent>[0];

/** Of an event; the API server takes 1,024 bytes. */
const longestMessage = 900;

/** In the words of older kubelets, which others may look for. */
export function changedEvent({ id, source }: ConfigVersion, effect: "at once" | "restart"): NodeEvent {
  const verb = effect === "restart" ? "restarting to use" : "uses";
  return { type: "Normal", reason: "KubeletConfigChanged", message: `Kubelet ${verb} ${detailOf(source, id)}` };
}

export function refusedEvent(why: string): NodeEvent {
  return { type: "Warning", reason: "KubeletConfigRefused", message: why.slice(0, longestMessage) };
}

export function rolledBackEvent(why: string): NodeEvent {
  const message = `The configuration was taken back: ${why}`.slice(0, longestMessage);
  return { type: "Warning", reason: "KubeletConfigRolledBack", message };
}

function detailOf(source: ConfigVersion["source"], id: string): string {
  if (source.from !== "configMap")
    return `${source.from === "files" ? "local config" : describeSource(source)} (${id})`;
  const { uid, resourceVersion, key } = source;
  return `${describeSource(source)}, UID: ${uid}, ResourceVersion: ${resourceVersion}, KubeletConfigKey: ${key}`;
}
