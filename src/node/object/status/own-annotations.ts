import type { Node } from "../../../ground/model/index.ts";
import { isUnspecified } from "../node-ip.ts";
import type { NodeConfigFacts } from "../ports.ts";
import type { NodeSettings } from "../settings.ts";

/** What the operator says about the node's addresses, for the controller of a cloud outside. */
const providedIpAnnotation = "alpha.kubernetes.io/provided-node-ip";
const configAnnotation = "nodelet.dev/config";

/** Annotations that follow from settings: there while they say something, gone when they no longer do. */
export function ownAnnotations(
  metadata: Node["metadata"],
  { externalCloud, nodeIps }: Pick<NodeSettings, "externalCloud" | "nodeIps">,
  config: NodeConfigFacts | undefined,
): Node["metadata"] {
  const given = nodeIps.filter((ip) => !isUnspecified(ip));
  const wanted: Readonly<Record<string, string | undefined>> = {
    [providedIpAnnotation]: externalCloud && given.length > 0 ? given.join(",") : undefined,
    [configAnnotation]: config?.annotation,
  };
  const present = metadata?.annotations ?? {};
  if (Object.entries(wanted).every(([name, value]) => present[name] === value)) return metadata;
  const kept = Object.entries({ ...present, ...wanted }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return { ...metadata, annotations: Object.fromEntries(kept) };
}
