// The pages that nobody sees first: a script of their own, see other-pages.tsx.
export { AgentPage } from "./agent.tsx";
export { ConfigPage } from "./config.tsx";
export { DoctorPage } from "./doctor.tsx";
export { ImagesPage } from "./images.tsx";
export { LogsPage } from "./logs.tsx";
export { MachinePage } from "./machine.tsx";
export { PodPage } from "./pod.tsx";
export { StoragePage } from "./storage.tsx";
