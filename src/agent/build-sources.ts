import { join } from "node:path";
import type { TaskScope } from "../ground/base/index.ts";
import type { PodSource, RecordPodEvent } from "../ground/model/index.ts";
import {
  FileSource,
  type ForeseenManifest,
  foreseeManifest,
  HttpSource,
  listStaticPods,
  PodMux,
  reportManifests,
  type SourcePorts,
  StaticPodAdoption,
  type StaticPodSettings,
} from "../pod/sources/index.ts";
import type { Foundation } from "./foundation.ts";

/** The configured sources of pods that read manifests; what they want goes into the one stream of all sources. */
export interface ManifestSources {
  readonly mux: PodMux;
  /** What a manifest of this name and content would come to among the manifests of this node. */
  foresee(name: string, manifest: Uint8Array): Promise<ForeseenManifest>;
  start(scope: TaskScope): Promise<void>;
}

export function buildSources(
  base: Foundation,
  { recordEvent, hasApi }: { readonly recordEvent: RecordPodEvent; readonly hasApi: boolean },
): ManifestSources {
  const { kubelet } = base.config;
  const log = base.log.named("sources");
  const sources: PodSource[] = [];
  if (kubelet.staticPodPath !== "") sources.push("file");
  if (kubelet.staticPodURL !== "") sources.push("http");
  if (hasApi) sources.push("api");
  const mux = new PodMux({ mode: "incremental", sources }, { clock: base.clock, recordEvent });
  const portsFor = (source: "file" | "http"): SourcePorts => ({
    clock: base.clock,
    log,
    reportProblem: reportManifests({ health: base.health, log, recordEvent }),
    deliver: (pods, signal) => mux.set(source, pods, signal),
  });
  const file = sources.includes("file") ? buildFileSource(base, portsFor("file")) : undefined;
  const http = sources.includes("http") ? buildHttpSource(base, portsFor("http")) : undefined;
  return {
    mux,
    foresee: (name, manifest) =>
      file?.foresee(name, manifest) ?? foreseeManifest(manifest, join("/", name), staticPodSettings(base)),
    async start(scope) {
      await file?.start(scope);
      if (http !== undefined) scope.spawn("manifest URL", (signal) => http.run(signal));
      if (sources.length > 0) return;
      log.warn("No source of pods is configured: set staticPodPath or staticPodURL, or give --kubeconfig");
    },
  };
}

function buildFileSource(base: Foundation, ports: SourcePorts): Pick<ManifestSources, "foresee" | "start"> {
  const { config, clock, cri } = base;
  const { kubelet, flags } = config;
  const { log } = ports;
  const adoption = new StaticPodAdoption([], join(flags.rootDir, "nodelet", "adopted-static-pods.json"), log);
  const file = new FileSource(
    {
      ...staticPodSettings(base),
      path: kubelet.staticPodPath,
      checkFrequencyMs: kubelet.fileCheckFrequencyMs,
      adoption,
    },
    ports,
  );
  return {
    foresee: (name, manifest) => file.foresee(name, manifest),
    async start(scope) {
      await adoption.restore(await listStaticPods(cri.runtime, { clock, log }, scope.signal));
      scope.spawn("manifest files", (signal) => file.run(signal));
    },
  };
}

function buildHttpSource(base: Foundation, ports: SourcePorts): HttpSource {
  const { kubelet } = base.config;
  return new HttpSource(
    {
      ...staticPodSettings(base),
      url: kubelet.staticPodURL,
      headers: kubelet.staticPodURLHeader,
      checkFrequencyMs: kubelet.httpCheckFrequencyMs,
    },
    ports,
  );
}

function staticPodSettings({ config }: Foundation): StaticPodSettings & { readonly lastGoodDirectory: string } {
  const { flags, nodeName, gates } = config;
  // Without an API server, config maps and secrets come from manifests beside those of the pods.
  const standalone = flags.kubeconfig === "";
  return {
    nodeName,
    references: {
      prevent: gates.enabled("PreventStaticPodAPIReferences"),
      allow: standalone ? ["configmaps", "secrets"] : [],
    },
    lastGoodDirectory: join(flags.rootDir, "nodelet", "manifests"),
  };
}
