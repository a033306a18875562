import { type Clock, Limiter, never, noTracer, type SpanStart, type Tracer } from "../../ground/base/index.ts";
import { UnixChannel, type WireCall } from "../../ground/grpc/index.ts";
import { type CallHealth, CallLog, type CallReport } from "./call-log.ts";
import { parseEndpoint } from "./endpoint.ts";
import { CriError, toCriError } from "./errors.ts";
import { type Envelope, EventsDefinition, type SubscribeRequest } from "./gen/containerd/events.ts";
import { SnapshotsDefinition, type UsageRequest, type UsageResponse } from "./gen/containerd/snapshots.ts";
import type { CheckpointContainerRequest } from "./gen/runtime/v1/container.ts";
import { ImageServiceDefinition, RuntimeServiceDefinition } from "./gen/runtime/v1/service.ts";
import { type ImageContent, imageContent } from "./image-content.ts";
import { bigOperations, type CriOperation, deadlineMs } from "./operations.ts";
import { problemWith } from "./sanity.ts";
import type { CallOptions, ImageService, RuntimeService, ServiceDefinition, ServiceOf } from "./services.ts";

export interface CriClientSettings {
  /** containerRuntimeEndpoint, e.g. `unix:///run/containerd/containerd.sock`. */
  readonly runtimeEndpoint: string;
  /** imageServiceEndpoint; undefined or empty: the runtime endpoint. */
  readonly imageEndpoint?: string | undefined;
  /** runtimeRequestTimeout. */
  readonly requestTimeoutMs: number;
}

export interface CriClientPorts {
  readonly clock: Clock;
  /** Told of every call that ended. */
  readonly onCall?: (report: CallReport) => void;
  readonly tracer?: Tracer;
}

const bigCallsAtOnce = 4;
// A list call that has not answered by then holds no response in memory, only a slot others wait for.
const bigCallSlotMs = 5_000;

/** CRI over unix sockets. Connects by itself, also after the runtime went away; until then calls fail as Unavailable. */
export class CriClient {
  readonly runtime: RuntimeService;
  readonly images: ImageService;
  readonly runtimeSocketPath: string;
  readonly imageSocketPath: string;
  readonly #runtimeChannel: UnixChannel;
  readonly #imageChannel: UnixChannel;
  readonly #calls: CallLog;
  readonly #clock: Clock;
  readonly #tracer: Tracer;
  readonly #requestTimeoutMs: number;
  readonly #bigCalls = new Limiter(bigCallsAtOnce);

  constructor({ runtimeEndpoint, imageEndpoint, requestTimeoutMs }: CriClientSettings, ports: CriClientPorts) {
    this.runtimeSocketPath = parseEndpoint(runtimeEndpoint).socketPath;
    this.imageSocketPath = imageEndpoint ? parseEndpoint(imageEndpoint).socketPath : this.runtimeSocketPath;
    this.#clock = ports.clock;
    this.#tracer = ports.tracer ?? noTracer;
    this.#requestTimeoutMs = requestTimeoutMs;
    this.#calls = new CallLog(ports.clock, ports.onCall ?? (() => {}));
    this.#runtimeChannel = new UnixChannel(this.runtimeSocketPath, toCriError);
    this.#imageChannel = new UnixChannel(this.imageSocketPath, toCriError);
    this.runtime = this.#serviceOn(this.#runtimeChannel, RuntimeServiceDefinition);
    this.images = this.#serviceOn(this.#imageChannel, ImageServiceDefinition);
  }

  /** What the runtime did with our calls lately. */
  health(): CallHealth {
    return this.#calls.health();
  }

  /** containerd's own events; other runtimes answer Unimplemented. */
  containerdEvents(request: SubscribeRequest, namespace: string, signal: AbortSignal): AsyncIterable<Envelope> {
    return this.#runtimeChannel.stream(EventsDefinition.fullName, EventsDefinition.methods.subscribe, request, {
      operation: "containerdEvents",
      deadline: undefined,
      signal,
      headers: { "containerd-namespace": namespace },
    });
  }

  /** What a container has written, as containerd measures it now; other runtimes answer Unimplemented. */
  async containerdUsage(request: UsageRequest, namespace: string, signal: AbortSignal): Promise<UsageResponse> {
    return await this.#runtimeChannel.unary(SnapshotsDefinition.fullName, SnapshotsDefinition.methods.usage, request, {
      operation: "containerdUsage",
      deadline: this.#clock.now() + this.#requestTimeoutMs,
      signal,
      headers: { "containerd-namespace": namespace },
    });
  }

  /** What containerd keeps of images, and what it is fetching; asking other runtimes fails as Unimplemented. */
  get imageContent(): ImageContent {
    return imageContent(this.#imageChannel, () => this.#clock.now());
  }

  /** Lets the connections go; calls in flight and later ones fail as Canceled. */
  close(): void {
    this.#runtimeChannel.close();
    this.#imageChannel.close();
  }

  #serviceOn<Service extends ServiceDefinition>(channel: UnixChannel, service: Service): ServiceOf<Service> {
    const calls = Object.entries(service.methods).map(([key, method]) => {
      const operation = key as CriOperation;
      const span = callSpan(service.fullName, method.name);
      const call = method.responseStream
        ? (request: unknown, options: CallOptions = {}) =>
            this.#observedStream(
              operation,
              options,
              channel.stream(service.fullName, method, request, this.#wire(operation, request, options)),
            )
        : async (request: unknown, options: CallOptions = {}) => {
            const message = operation === "checkpointContainer" ? this.#checkpointRequest(request) : request;
            return await this.#tracer.span(span, () =>
              this.#observed(operation, options, () =>
                channel.unary(service.fullName, method, message, this.#wire(operation, message, options)),
              ),
            );
          };
      return [key, call];
    });
    return Object.fromEntries(calls) as ServiceOf<Service>;
  }

  #wire(operation: CriOperation, request: unknown, { signal, timeoutMs }: CallOptions): WireCall {
    const allowedMs = timeoutMs ?? deadlineMs(operation, request, this.#requestTimeoutMs);
    const traceparent = this.#tracer.traceparent();
    return {
      operation,
      signal,
      deadline: allowedMs === undefined ? undefined : this.#clock.now() + allowedMs,
      ...(traceparent !== undefined && { headers: { traceparent } }),
    };
  }

  async #observed(operation: CriOperation, { signal }: CallOptions, send: () => Promise<unknown>): Promise<unknown> {
    const end = this.#calls.begin(operation, signal);
    try {
      const response = await (bigOperations.has(operation) ? this.#inTurn(send, signal) : send());
      const problem = problemWith(operation, response);
      if (problem !== undefined) throw new CriError("InvalidResponse", operation, problem);
      end();
      return response;
    } catch (error) {
      end(error);
      throw error;
    }
  }

  async *#observedStream<Item>(operation: CriOperation, { signal }: CallOptions, items: AsyncIterable<Item>) {
    const end = this.#calls.beginStream(operation, signal);
    let failure: unknown;
    try {
      yield* items;
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      end(failure);
    }
  }

  /** Runs few big calls at once. One that hangs gives its turn away, so that it never blocks others. */
  async #inTurn(send: () => Promise<unknown>, signal: AbortSignal | undefined): Promise<unknown> {
    let response: Promise<unknown> = Promise.resolve();
    await this.#bigCalls.run(async () => {
      response = send();
      let giveUpTurn = (): void => {};
      const turnOver = new Promise<void>((resolve) => {
        giveUpTurn = resolve;
      });
      const timer = this.#clock.after(bigCallSlotMs, giveUpTurn);
      await Promise.race([response.catch(() => {}), turnOver]);
      timer.cancel();
    }, signal ?? never);
    return await response;
  }

  /** The runtime gets to know the time we allow; a negative one is refused before it leaves. */
  #checkpointRequest(request: unknown): CheckpointContainerRequest {
    const checkpoint = request as CheckpointContainerRequest;
    if (checkpoint.timeout < 0n) {
      const problem = "CheckpointContainer requires the timeout value to be > 0";
      throw new CriError("InvalidArgument", "checkpointContainer", problem);
    }
    const timeout = BigInt(Math.floor(this.#requestTimeoutMs / 1000));
    return checkpoint.timeout > timeout ? checkpoint : { ...checkpoint, timeout };
  }
}

function callSpan(service: string, method: string): SpanStart {
  const attributes = { "rpc.system": "grpc", "rpc.service": service, "rpc.method": method };
  return { name: `${service}/${method}`, kind: "client", attributes };
}
