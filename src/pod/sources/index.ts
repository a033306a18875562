// Where desired pods come from (manifest files, a URL, the API) and how they become one stream of changes.
export { ApiSource } from "./api-source.ts";
export { FileSource } from "./file-source.ts";
export { type ForeseenManifest, foreseeManifest } from "./foreseen-manifest.ts";
export { HttpSource } from "./http-source.ts";
export { listStartedPods, listStaticPods } from "./list-started-pods.ts";
export type { StaticPodSettings } from "./make-static-pod.ts";
export { type ManifestPlanPorts, planManifest } from "./manifest-plan.ts";
export { reportManifests } from "./manifest-reports.ts";
export { isIdentified, OfflineFile } from "./offline-file.ts";
export { PodMux } from "./pod-mux.ts";
export type { ManifestReport, SourcePorts } from "./ports.ts";
export { StaticPodAdoption } from "./static-pod-adoption.ts";
