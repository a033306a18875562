// Traces for a collector, by OTLP over gRPC. Loaded only where the configuration wants traces.
import type { Clock, Logger, Tracer } from "../../ground/base/index.ts";
import { type AgentConfig, NODELET_VERSION } from "../../ground/config/index.ts";
import { collectorEndpoint } from "./endpoint.ts";
import { OtlpTracer } from "./otlp-tracer.ts";
import { SpanExporter } from "./span-exporter.ts";

/** Who makes spans, and who brings them to the collector. */
export interface Tracing {
  readonly tracer: Tracer;
  run(signal: AbortSignal): Promise<void>;
}

/** Those who filter by it look for the kubelet's. */
const scopeName = "k8s.io/kubernetes/pkg/kubelet";

export function startTracing(
  settings: NonNullable<AgentConfig["kubelet"]["tracing"]>,
  nodeName: string,
  ports: { readonly clock: Clock; readonly log: Logger },
): Tracing {
  const exporter = new SpanExporter(
    {
      endpoint: collectorEndpoint(settings.endpoint),
      resource: { "service.name": "kubelet", "service.version": NODELET_VERSION, "host.name": nodeName },
      scope: { name: scopeName, version: NODELET_VERSION },
    },
    ports,
  );
  const tracer = new OtlpTracer(settings.samplingRatePerMillion ?? 0, { clock: ports.clock, add: exporter.add });
  return { tracer, run: (signal) => exporter.run(signal) };
}
