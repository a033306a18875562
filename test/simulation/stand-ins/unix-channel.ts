// In place of ground/grpc/unix-channel.ts: calls go to the simulated runtime. No plugin listens on this machine.
import { CriError } from "../../../src/connections/cri/errors.ts";
import type { MethodDefinition, RequestOf, ResponseOf, WireCall } from "../../../src/ground/grpc/unix-channel.ts";
import { machine, neighbours } from "../machine/machine.ts";

export class UnixChannel {
  #isClosed = false;

  close(): void {
    this.#isClosed = true;
  }

  async unary<Method extends MethodDefinition>(
    _service: string,
    _method: Method,
    request: RequestOf<Method>,
    { operation, deadline, signal }: WireCall,
  ): Promise<ResponseOf<Method>> {
    signal?.throwIfAborted();
    this.#refuseIfClosed(operation);
    const answer = await neighbours().callRuntime(operation, request, { signal, allowedMs: allowed(deadline) });
    return answer as ResponseOf<Method>;
  }

  async *stream<Method extends MethodDefinition>(
    _service: string,
    _method: Method,
    _request: RequestOf<Method>,
    { operation, deadline, signal }: WireCall,
  ): AsyncGenerator<ResponseOf<Method>, void> {
    signal?.throwIfAborted();
    this.#refuseIfClosed(operation);
    const items = neighbours().streamRuntime(operation, { signal, allowedMs: allowed(deadline) });
    for await (const item of items) yield item as ResponseOf<Method>;
  }

  #refuseIfClosed(operation: string): void {
    if (this.#isClosed) throw new CriError("Canceled", operation, "the client has been closed");
  }
}

/** Deadlines are times of day; the library makes durations of them. */
function allowed(deadline: number | undefined): number | undefined {
  return deadline === undefined ? undefined : Math.max(0, deadline - machine().timeline.wallNow());
}
