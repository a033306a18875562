import { downwardContent } from "../content/sources.ts";
import { type ContentKindPorts, type ContentKindSpec, contentKind, requiredMode } from "./content-kind.ts";
import type { VolumeKind } from "./kind.ts";

export function downwardApiKind(ports: ContentKindPorts): VolumeKind {
  const spec: ContentKindSpec = {
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
  return contentKind(spec, ports);
}
