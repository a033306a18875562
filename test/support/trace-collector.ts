import { type handleUnaryCall, Server, ServerCredentials, type ServiceDefinition } from "@grpc/grpc-js";
import {
  ExportTraceServiceRequest,
  ExportTraceServiceResponse,
  TraceServiceDefinition,
} from "../../src/connections/otlp/gen/trace.ts";

type Answer = "takes" | "never answers" | "talks rubbish";

/** A collector of traces on loopback; keeps what it gets. */
export class TraceCollector implements Disposable {
  readonly got: ExportTraceServiceRequest[] = [];
  readonly #server = new Server();
  answer: Answer = "takes";
  endpoint = "";

  static async start(): Promise<TraceCollector> {
    const collector = new TraceCollector();
    const { fullName, methods } = TraceServiceDefinition;
    const definition: ServiceDefinition = {
      export: {
        path: `/${fullName}/${methods.export.name}`,
        requestStream: false,
        responseStream: false,
        requestSerialize: (request: ExportTraceServiceRequest) =>
          Buffer.from(ExportTraceServiceRequest.encode(request).finish()),
        requestDeserialize: (bytes) => ExportTraceServiceRequest.decode(bytes),
        responseSerialize: (bytes: Buffer) => bytes,
        responseDeserialize: (bytes) => bytes,
      },
    };
    const take: handleUnaryCall<ExportTraceServiceRequest, Buffer> = ({ request }, reply) => {
      collector.got.push(request);
      if (collector.answer === "never answers") return;
      const fine = ExportTraceServiceResponse.encode({ partialSuccess: undefined }).finish();
      // A field that says it is longer than all that follows.
      reply(null, collector.answer === "takes" ? Buffer.from(fine) : Buffer.from([0x0a, 0xff, 0xff, 0x7f]));
    };
    collector.#server.addService(definition, { export: take });
    const port = await new Promise<number>((resolve, reject) => {
      collector.#server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) => {
        if (error === null) resolve(bound);
        else reject(error);
      });
    });
    collector.endpoint = `127.0.0.1:${port}`;
    return collector;
  }

  /** The names of all spans that came. */
  get names(): readonly string[] {
    return this.got.flatMap(({ resourceSpans }) =>
      resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map(({ name }) => name))),
    );
  }

  [Symbol.dispose](): void {
    this.#server.forceShutdown();
  }
}
