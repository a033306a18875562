import type { KeyPair } from "../auth/certificates.ts";
import type { SpecialCall, SpecialHandler } from "../http/api.ts";
import { plainText, type Reply } from "../http/reply.ts";
import { pods } from "../kinds/index.ts";
import type { World } from "../rest/world.ts";
import { badRequest, StatusError } from "../status-error.ts";
import { forward, readUpTo } from "./forward.ts";
import { containerTarget, nodeTarget, type ProxyTarget, podTarget } from "./target.ts";

/** An error is a sentence or two. */
const mostErrorBytes = 64 * 1024;

/** GET pods/NAME/log: the kubelet tells it. */
export function podLogs(identity: KeyPair): SpecialHandler {
  return async (call, world) => {
    const target = containerTarget(world, call.namespace, call.name, "log", call.query);
    if (target === undefined) return plainText("");
    const response = await forward(target, { method: "GET", headers: {} }, identity, call.clientLeft());
    const code = response.statusCode ?? 500;
    if (code >= 200 && code < 300) return { type: "stream", code, contentType: "text/plain", body: response };
    throw failedLog(code, (await readUpTo(response, mostErrorBytes)).trim(), call.name);
  };
}

function failedLog(code: number, message: string, name: string): StatusError {
  if (code === 400) return badRequest(message);
  if (code === 500) return new StatusError(500, "InternalError", `Internal error occurred: ${message}`);
  const reason = code === 404 ? "NotFound" : code === 403 ? "Forbidden" : "";
  const details = { name, kind: pods.plural, causes: [{ reason: "UnexpectedServerResponse", message }] };
  return new StatusError(code, reason, message, details);
}

/** Any request to nodes/NAME/proxy or pods/NAME/proxy goes to the kubelet or the pod as it is. */
export function proxied(identity: KeyPair, kind: "node" | "pod"): SpecialHandler {
  return async (call, world): Promise<Reply> => {
    const target = proxyTarget(call, world, kind);
    const hasBody = call.method !== "GET" && call.method !== "HEAD";
    const response = await forward(
      target,
      {
        method: call.method,
        headers: {
          ...(call.accept !== "" && { accept: call.accept }),
          ...(hasBody && { "content-type": call.contentType }),
        },
        ...(hasBody && { body: call.stream }),
      },
      identity,
      call.clientLeft(),
    );
    const contentType = response.headers["content-type"] ?? "application/octet-stream";
    return { type: "stream", code: response.statusCode ?? 502, contentType, body: response };
  };
}

export function proxyTarget(
  call: Pick<SpecialCall, "name" | "namespace" | "rest" | "query">,
  world: World,
  kind: "node" | "pod",
): ProxyTarget {
  const query = call.query.toString();
  const path = `/${call.rest.split("/").map(encodeURIComponent).join("/")}${query === "" ? "" : `?${query}`}`;
  return kind === "node" ? nodeTarget(world, call.name, path) : podTarget(world, call.namespace, call.name, path);
}

/** exec, attach and port-forward are conversations, not questions. */
export const needsUpgrade: SpecialHandler = () => {
  throw badRequest("Upgrade request required");
};
