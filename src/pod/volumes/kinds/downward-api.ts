import { downwardContent } from "../content/sources.ts";
import type { VolumeKind } from "./kind.ts";
import { type LiveContentPorts, type LiveContentSpec, liveContentKind, requiredMode } from "./live-content.ts";

export function downwardApiKind(ports: LiveContentPorts): VolumeKind {
  const spec: LiveContentSpec = {
    plugin: "kubernetes.io/downward-api",
    handles: ({ downwardAPI }) => downwardAPI !== undefined,
    medium: "memory",
    needs: () => [],
    async content({ pod }, { downwardAPI = {} }) {
      return downwardContent(
        pod,
        downwardAPI.items ?? [],
        requiredMode(downwardAPI.defaultMode),
        ports.nodeAllocatable(),
      );
    },
  };
  return liveContentKind(spec, ports);
}
