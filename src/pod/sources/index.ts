// Where desired pods come from (manifest files, a URL, the API) and how they become one stream of changes.
export type { ApiReferencePolicy } from "./api-references.ts";
export { ApiSource } from "./api-source.ts";
export { FileSource, type FileSourceSettings } from "./file-source.ts";
export { HttpSource, type HttpSourceSettings } from "./http-source.ts";
export { listStartedPods, listStaticPods } from "./list-started-pods.ts";
export type { StaticPodSettings } from "./make-static-pod.ts";
export { reportManifests } from "./manifest-reports.ts";
export type { NotificationMode, NotificationOf, PodNotification, PodSnapshot } from "./notifications.ts";
export { isIdentified, OfflineFile } from "./offline-file.ts";
export { PodMux, type PodMuxPorts, type PodMuxSettings } from "./pod-mux.ts";
export type { SourceChange } from "./pods-of-source.ts";
export type { ManifestReport, ReportProblem, SourcePorts } from "./ports.ts";
export type { StartedPod } from "./started-pod.ts";
export { StaticPodAdoption } from "./static-pod-adoption.ts";
