import { join } from "node:path";
import type { TaskScope } from "../ground/base/index.ts";
import type { PodSource, RecordPodEvent } from "../ground/model/index.ts";
import {
  FileSource,
  HttpSource,
  PodMux,
  type SourcePorts,
  StaticPodAdoption,
  type StaticPodSettings,
} from "../pod/sources/index.ts";
import { reportManifests } from "./manifest-reports.ts";
import type { AgentParts } from "./pods.ts";
import { listStaticPods } from "./started-pods.ts";

/** Starts the configured sources of pods; out comes the one stream that the engine reads. */
export async function startSources(
  parts: AgentParts & { readonly recordEvent: RecordPodEvent; readonly hasApi: boolean },
  scope: TaskScope,
): Promise<PodMux> {
  const { config, clock, recordEvent } = parts;
  const { kubelet, flags, nodeName, gates } = config;
  const log = parts.log.named("sources");
  const sources: PodSource[] = [];
  if (kubelet.staticPodPath !== "") sources.push("file");
  if (kubelet.staticPodURL !== "") sources.push("http");
  if (parts.hasApi) sources.push("api");
  const mux = new PodMux({ mode: "incremental", sources }, { clock, recordEvent });
  // Without an API server, config maps and secrets come from manifests beside those of the pods.
  const standalone = flags.kubeconfig === "";
  const settings: StaticPodSettings = {
    nodeName,
    references: {
      prevent: gates.enabled("PreventStaticPodAPIReferences"),
      allow: standalone ? ["configmaps", "secrets"] : [],
    },
  };
  const lastGoodDirectory = join(flags.rootDir, "nodelet", "manifests");
  const portsFor = (source: "file" | "http"): SourcePorts => ({
    clock,
    log,
    reportProblem: reportManifests({ health: parts.health, log, recordEvent }),
    deliver: (pods, signal) => mux.set(source, pods, signal),
  });
  if (sources.includes("file")) {
    const started = await listStaticPods(parts.cri.runtime, { clock, log }, scope.signal);
    const adoption = new StaticPodAdoption(started, join(flags.rootDir, "nodelet", "adopted-static-pods.json"), log);
    await adoption.restore();
    const file = new FileSource(
      {
        ...settings,
        path: kubelet.staticPodPath,
        checkFrequencyMs: kubelet.fileCheckFrequencyMs,
        lastGoodDirectory,
        adoption,
      },
      portsFor("file"),
    );
    scope.spawn("manifest files", (signal) => file.run(signal));
  }
  if (sources.includes("http")) {
    const http = new HttpSource(
      {
        ...settings,
        url: kubelet.staticPodURL,
        headers: kubelet.staticPodURLHeader,
        checkFrequencyMs: kubelet.httpCheckFrequencyMs,
        lastGoodDirectory,
      },
      portsFor("http"),
    );
    scope.spawn("manifest URL", (signal) => http.run(signal));
  }
  if (sources.length === 0)
    log.warn("No source of pods is configured: set staticPodPath or staticPodURL, or give --kubeconfig");
  return mux;
}
