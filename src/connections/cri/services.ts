import type { MethodDefinition, RequestOf, ResponseOf } from "../../ground/grpc/index.ts";
import type { ImageServiceDefinition, RuntimeServiceDefinition } from "./gen/runtime/v1/service.ts";

/** How long one call may take and what cancels it. Without `timeoutMs` the deadline of the operation applies. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
}

export interface ServiceDefinition {
  readonly fullName: string;
  readonly methods: Readonly<Record<string, MethodDefinition>>;
}

/** One call: a promise of the response, or for a server stream the responses as they come. */
export type MethodCall<Method extends MethodDefinition> = (
  request: RequestOf<Method>,
  options?: CallOptions,
) => Method["responseStream"] extends true ? AsyncIterable<ResponseOf<Method>> : Promise<ResponseOf<Method>>;

export type ServiceOf<Service extends ServiceDefinition> = {
  readonly [Method in keyof Service["methods"]]: MethodCall<Service["methods"][Method]>;
};

/** CRI's RuntimeService: what the agent asks of sandboxes and containers. */
export type RuntimeService = ServiceOf<typeof RuntimeServiceDefinition>;
/** CRI's ImageService. */
export type ImageService = ServiceOf<typeof ImageServiceDefinition>;
