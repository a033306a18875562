// The container runtime's door: CRI messages, the two services as typed interfaces, and a gRPC client for them.
export * from "./gen/index.ts";
export type { CallOptions, ImageService, RuntimeService } from "./services.ts";
