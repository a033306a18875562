// In place of ground/grpc/unix-channel.ts: calls go to the simulated runtime, or to a plugin.
import { CriError } from "../../../src/connections/cri/errors.ts";
import { GrpcError } from "../../../src/ground/grpc/grpc-error.ts";
import type { MethodDefinition, RequestOf, ResponseOf, WireCall } from "../../../src/ground/grpc/unix-channel.ts";
import { machine, neighbours, runtimeSocket } from "../machine/machine.ts";

export class UnixChannel {
  readonly #socketPath: string;
  readonly #toError: (operation: string, error: GrpcError) => Error;
  #isClosed = false;
  #stopWatching = (): void => {};

  constructor(socketPath: string, toError: (operation: string, error: GrpcError) => Error) {
    this.#socketPath = socketPath;
    this.#toError = toError;
  }

  close(): void {
    this.#isClosed = true;
    this.#stopWatching();
  }

  watchPresence(onChange: (isThere: boolean) => void): void {
    this.#stopWatching = neighbours().watchPlugin(this.#socketPath, onChange);
  }

  async unary<Method extends MethodDefinition>(
    _service: string,
    _method: Method,
    request: RequestOf<Method>,
    { operation, deadline, signal }: WireCall,
  ): Promise<ResponseOf<Method>> {
    signal?.throwIfAborted();
    this.#refuseIfClosed(operation);
    const call = { signal, allowedMs: allowed(deadline) };
    if (this.#socketPath === runtimeSocket)
      return (await neighbours().callRuntime(operation, request, call)) as ResponseOf<Method>;
    try {
      return (await neighbours().callPlugin(this.#socketPath, operation, request, call)) as ResponseOf<Method>;
    } catch (error) {
      throw this.#told(operation, error);
    }
  }

  async *stream<Method extends MethodDefinition>(
    _service: string,
    _method: Method,
    _request: RequestOf<Method>,
    { operation, deadline, signal }: WireCall,
  ): AsyncGenerator<ResponseOf<Method>, void> {
    signal?.throwIfAborted();
    this.#refuseIfClosed(operation);
    const call = { signal, allowedMs: allowed(deadline) };
    if (this.#socketPath === runtimeSocket) {
      for await (const item of neighbours().streamRuntime(operation, call)) yield item as ResponseOf<Method>;
      return;
    }
    try {
      const items = neighbours().streamPlugin(this.#socketPath, operation, call);
      for await (const item of items) yield item as ResponseOf<Method>;
    } catch (error) {
      throw this.#told(operation, error);
    }
  }

  #told(operation: string, error: unknown): unknown {
    return error instanceof GrpcError ? this.#toError(operation, error) : error;
  }

  #refuseIfClosed(operation: string): void {
    if (this.#isClosed) throw new CriError("Canceled", operation, "the client has been closed");
  }
}

/** Deadlines are times of day; the library makes durations of them. */
function allowed(deadline: number | undefined): number | undefined {
  return deadline === undefined ? undefined : Math.max(0, deadline - machine().timeline.wallNow());
}
