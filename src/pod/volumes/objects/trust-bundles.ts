import { createHash, X509Certificate } from "node:crypto";
import {
  type ClusterTrustBundleProjection,
  matchesLabelSelector,
  type V1beta1ClusterTrustBundle,
} from "../../../ground/model/index.ts";

/** Port: the cluster's trust bundles, known after the first answer of the API server. */
export interface TrustBundles {
  /** Throws while nothing is known yet. */
  list(signal: AbortSignal): Promise<readonly V1beta1ClusterTrustBundle[]>;
  onChange(listener: () => void): void;
}

const longestSelector = 100 * 1024;

/** The certificates that a projection asks for, each once, in an order that says nothing but stays the same for a pod. */
export function trustAnchors(
  projection: ClusterTrustBundleProjection,
  bundles: readonly V1beta1ClusterTrustBundle[],
  podUid: string,
): string {
  const blocks = new Set<string>();
  for (const bundle of chosen(projection, bundles)) {
    for (const block of certificatesIn(bundle.spec.trustBundle)) blocks.add(block);
  }
  const rank = (block: string): string => createHash("sha256").update(podUid).update(block).digest("hex");
  return [...blocks]
    .map((block) => [rank(block), block] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, block]) => block)
    .join("");
}

function chosen(
  { name, signerName, labelSelector, optional }: ClusterTrustBundleProjection,
  bundles: readonly V1beta1ClusterTrustBundle[],
): readonly V1beta1ClusterTrustBundle[] {
  if (name !== undefined) {
    const found = bundles.find(({ metadata }) => metadata?.name === name);
    if (found !== undefined) return [found];
    if (optional === true) return [];
    throw new Error(`clustertrustbundle "${name}" not found`);
  }
  if (signerName === undefined) throw new Error("a ClusterTrustBundle projection needs a name or a signerName");
  if (JSON.stringify(labelSelector ?? {}).length > longestSelector) {
    throw new Error(`the labelSelector of signerName ${signerName} is larger than ${longestSelector} bytes`);
  }
  const found = bundles.filter(
    ({ metadata, spec }) =>
      spec.signerName === signerName &&
      labelSelector !== undefined &&
      matchesLabelSelector(labelSelector, metadata?.labels ?? {}),
  );
  if (found.length === 0 && optional !== true) {
    throw new Error("combination of signerName and labelSelector matched zero ClusterTrustBundles");
  }
  return found;
}

const blockBegin = "-----BEGIN CERTIFICATE-----";
const blockEnd = "-----END CERTIFICATE-----";

/** PEM blocks of certificates in one spelling, so that the same certificate is recognised in two bundles. */
function certificatesIn(pem: string): readonly string[] {
  const found: string[] = [];
  // Step by step: a pattern would look for the end anew from every beginning that has none.
  for (let begin = pem.indexOf(blockBegin); begin >= 0; ) {
    const end = pem.indexOf(blockEnd, begin);
    if (end < 0) break;
    const after = end + blockEnd.length;
    found.push(new X509Certificate(pem.slice(begin, after)).toString());
    begin = pem.indexOf(blockBegin, after);
  }
  return found;
}
