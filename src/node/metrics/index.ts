// What the agent counts of itself: small hooks that other parts call, and figures that are read when somebody asks.
import type { Clock } from "../../ground/base/index.ts";
import type { HealthRegistry, MetricRegistries } from "../server/index.ts";
import { delays } from "./buckets.ts";
import { ClaimMetrics } from "./claim-metrics.ts";
import { DeviceMetrics } from "./device-metrics.ts";
import { DoctorMetrics } from "./doctor-metrics.ts";
import { ImageMetrics } from "./image-metrics.ts";
import { KubeMetrics } from "./kube-metrics.ts";
import { measuredClock } from "./measured-clock.ts";
import { NodeStartup } from "./node-startup.ts";
import { PlacementMetrics } from "./placement-metrics.ts";
import { PodMetrics } from "./pod-metrics.ts";
import { PodResourcesMetrics } from "./pod-resources-metrics.ts";
import { ProbeMetrics } from "./probe-metrics.ts";
import { showProcess } from "./process-metrics.ts";
import { ResizeMetrics } from "./resize-metrics.ts";
import { RuntimeMetrics } from "./runtime-metrics.ts";
import { VolumeMetrics } from "./volume-metrics.ts";

export { showClientCertificate, showServingCertificate } from "./certificate-metrics.ts";
export { showNodeState } from "./node-state.ts";
export { OomMetrics } from "./oom-metrics.ts";
export { showPlacement } from "./placement-metrics.ts";
export { showIdentity } from "./process-metrics.ts";
export { type ShownRollout, showRollout } from "./rollout-metrics.ts";
export { ShutdownMetrics } from "./shutdown-metrics.ts";

export class AgentMetrics {
  readonly figures: MetricRegistries;
  readonly runtime: RuntimeMetrics;
  readonly pods: PodMetrics;
  readonly resizes: ResizeMetrics;
  readonly placement: PlacementMetrics;
  readonly devices: DeviceMetrics;
  readonly claims: ClaimMetrics;
  readonly podResources: PodResourcesMetrics;
  readonly images: ImageMetrics;
  readonly probes: ProbeMetrics;
  readonly volumes: VolumeMetrics;
  readonly kube: KubeMetrics;
  readonly startup: NodeStartup;
  readonly doctor: DoctorMetrics;
  /** The clock that the agent goes by. */
  readonly clock: Clock;

  constructor(figures: MetricRegistries, clock: Clock) {
    const { main } = figures;
    this.figures = figures;
    this.runtime = new RuntimeMetrics(main);
    this.pods = new PodMetrics(main);
    this.resizes = new ResizeMetrics(main);
    this.placement = new PlacementMetrics(main, () => clock.monotonic());
    this.devices = new DeviceMetrics(main);
    this.claims = new ClaimMetrics(main);
    this.podResources = new PodResourcesMetrics(main);
    this.images = new ImageMetrics(main);
    this.probes = new ProbeMetrics(figures.probes, main);
    this.volumes = new VolumeMetrics(main);
    this.kube = new KubeMetrics(main);
    this.startup = new NodeStartup(main, clock);
    this.doctor = new DoctorMetrics(main);
    showProcess(figures, clock);
    const help = "How much later than wanted the agent's timers fired";
    const late = main.histogram("nodelet_event_loop_delay_seconds", help, delays);
    this.clock = measuredClock(clock, (lateMs) => late.observe({}, lateMs / 1000));
  }

  /** How long ago each part last showed that it works: the watch of the API, the lease, the runtime… */
  showHealth(health: HealthRegistry): void {
    const { main } = this.figures;
    main.read(
      "nodelet_health_proof_age_seconds",
      "gauge",
      "How long ago a part last showed that it works",
      ["name"],
      () =>
        health
          .read()
          .flatMap(({ name, provenMs }) => (provenMs === undefined ? [] : [[{ name }, provenMs / 1000] as const])),
    );
    main.read(
      "nodelet_health_ok",
      "gauge",
      "1 for parts that work, 0 for those that wait or have failed",
      ["name"],
      () => health.read().map(({ name, health: { state } }) => [{ name }, state === "ok" ? 1 : 0]),
    );
  }
}
