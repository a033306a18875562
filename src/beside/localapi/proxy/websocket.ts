import type { IncomingMessage } from "node:http";
import { badRequest } from "../status-error.ts";

/** Sub-protocols that kubelets do not speak and a kube-apiserver would translate for them. */
const untranslated = ["v5.channel.k8s.io", "SPDY/3.1+portforward.k8s.io"];

/**
 * kubectl tries these first and, refused, falls back to SPDY, which kubelets speak. Refusing here saves it the way
 * to the kubelet and back.
 */
export function refuseUntranslated({ headers }: IncomingMessage): void {
  const offered = (headers["sec-websocket-protocol"] ?? "").split(",").map((protocol) => protocol.trim());
  const isHopeless =
    offered.some((protocol) => protocol !== "") && offered.every((each) => untranslated.includes(each));
  if (isHopeless) throw badRequest(`unable to upgrade: none of the sub-protocols ${offered.join(", ")} is supported`);
}
