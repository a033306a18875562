// In place of connections/kube/transport/transport.ts: requests go to the API in memory.
import type { HttpRequest, HttpResponse } from "../../../src/connections/kube/transport/http.ts";
import type { TransportPorts, TransportSettings } from "../../../src/connections/kube/transport/transport.ts";
import { neighbours } from "../machine/machine.ts";

export class Transport implements Disposable {
  readonly #ports: TransportPorts;

  constructor(_settings: TransportSettings, ports: TransportPorts) {
    this.#ports = ports;
  }

  async send(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
    const headers = { ...request.headers, ...(await this.#ports.credentials.headers(signal)) };
    signal.throwIfAborted();
    return await neighbours().askApi({ ...request, headers }, signal);
  }

  get openConnections(): number {
    return 1;
  }

  closeConnections(): void {
    neighbours().cutApi();
  }

  retireConnections(): void {}

  [Symbol.dispose](): void {}
}
