import { messageOf } from "../../ground/base/index.ts";
import { GrpcError, type ServedCall, type ServedService } from "../../ground/grpc/index.ts";
import { criCodeOf } from "./errors.ts";
import { ImageServiceDefinition, RuntimeServiceDefinition } from "./gen/index.ts";
import type { ImageService, RuntimeService } from "./services.ts";

/** Services of this project's own that speak CRI. Methods left out answer Unimplemented, as an older runtime would. */
export interface CriServices {
  readonly runtime?: Partial<RuntimeService>;
  readonly images?: Partial<ImageService>;
}

/** What a server of gRPC needs to offer them; their CriErrors keep their codes. */
export function servedCri({ runtime, images }: CriServices): readonly ServedService[] {
  const served: ServedService[] = [];
  if (runtime !== undefined) served.push(servedBy(RuntimeServiceDefinition, runtime));
  if (images !== undefined) served.push(servedBy(ImageServiceDefinition, images));
  return served;
}

type Unary = (request: unknown, call: ServedCall) => Promise<unknown>;
type Stream = (request: unknown, call: ServedCall) => AsyncIterable<unknown>;

function servedBy(definition: ServedService["definition"], service: object): ServedService {
  const methods: Record<string, ServedService["methods"][string]> = {};
  for (const [key, { responseStream }] of Object.entries(definition.methods)) {
    const method: unknown = Reflect.get(service, key);
    if (typeof method !== "function") continue;
    const bound: unknown = method.bind(service);
    methods[key] = responseStream ? streaming(bound as Stream) : answering(bound as Unary);
  }
  return { definition, methods };
}

function answering(method: Unary): Unary {
  return async (request, call) => {
    try {
      return await method(request, call);
    } catch (error) {
      throw asGrpcError(error);
    }
  };
}

function streaming(method: Stream): Stream {
  return async function* (request, call) {
    try {
      yield* method(request, call);
    } catch (error) {
      throw asGrpcError(error);
    }
  };
}

function asGrpcError(error: unknown): GrpcError {
  const code = criCodeOf(error) ?? "Unknown";
  return new GrpcError(code === "InvalidResponse" ? "Unknown" : code, messageOf(error), error);
}
