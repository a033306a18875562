import { Server, ServerCredentials } from "@grpc/grpc-js";
import {
  HealthCheckRequest,
  HealthCheckResponse,
  HealthCheckResponse_ServingStatus,
} from "../../src/pod/probes/gen/health.ts";

export { HealthCheckResponse_ServingStatus as ServingStatus };

/** A gRPC health service on the host, for probes of pods on the host's network. */
export interface HealthService extends Disposable {
  readonly port: number;
  /** The services that were asked for, in order. */
  readonly asked: readonly string[];
  status: HealthCheckResponse_ServingStatus;
}

export async function serveHealth(status: HealthCheckResponse_ServingStatus): Promise<HealthService> {
  const asked: string[] = [];
  const server = new Server();
  const health = { status };
  server.addService(
    {
      check: {
        path: "/grpc.health.v1.Health/Check",
        requestStream: false,
        responseStream: false,
        requestSerialize: (value: HealthCheckRequest) => Buffer.from(HealthCheckRequest.encode(value).finish()),
        requestDeserialize: (bytes: Buffer) => HealthCheckRequest.decode(bytes),
        responseSerialize: (value: HealthCheckResponse) => Buffer.from(HealthCheckResponse.encode(value).finish()),
        responseDeserialize: (bytes: Buffer) => HealthCheckResponse.decode(bytes),
      },
    },
    {
      check: (
        call: { readonly request: HealthCheckRequest },
        answer: (error: null, response: HealthCheckResponse) => void,
      ) => {
        asked.push(call.request.service);
        answer(null, { status: health.status });
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("0.0.0.0:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return Object.assign(health, { port, asked, [Symbol.dispose]: () => server.forceShutdown() });
}
