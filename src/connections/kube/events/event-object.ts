import { randomUUID } from "node:crypto";
import {
  apiTime,
  type Event,
  type IdentifiedPod,
  type ObjectReference,
  type PodEvent,
} from "../../../ground/model/index.ts";

/** Who reports: the component and the node it runs on. */
export interface EventSourceName {
  readonly component: string;
  readonly host: string;
}

export function podReference({ metadata }: IdentifiedPod, fieldPath: string | undefined): ObjectReference {
  const { namespace, name, uid, resourceVersion } = metadata;
  return {
    kind: "Pod",
    namespace,
    name,
    uid,
    apiVersion: "v1",
    ...(resourceVersion !== undefined && { resourceVersion }),
    ...(fieldPath !== undefined && { fieldPath }),
  };
}

/** A node's events carry its name as uid, since they begin before the API server has given it one. */
export function nodeReference(nodeName: string): ObjectReference {
  return { kind: "Node", name: nodeName, uid: nodeName };
}

export function eventObject(
  source: EventSourceName,
  involvedObject: ObjectReference,
  { type, reason, message, annotations }: PodEvent,
  nanos: bigint,
): Event {
  const time = timestamp(nanos);
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: {
      name: eventName(involvedObject.name ?? "", nanos),
      namespace: involvedObject.namespace || "default",
      ...(annotations !== undefined && { annotations }),
    },
    involvedObject,
    reason,
    message,
    source: { ...source },
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
    type,
    reportingComponent: source.component,
    reportingInstance: source.host,
  };
}

const longestSubdomain = 253;
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

export function eventName(object: string, nanos: bigint): string {
  const name = `${object}.${nanos.toString(16)}`;
  return name.length <= longestSubdomain && subdomain.test(name) ? name : randomUUID();
}

/** Kubernetes' times of this kind have whole seconds. */
export function timestamp(nanos: bigint): string {
  return apiTime(Number(nanos / 1_000_000n));
}
