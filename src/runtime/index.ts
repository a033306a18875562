// Sandboxes and containers: how they are described to the runtime, and what is observed of them.
export * from "./mapping/index.ts";
export { translateContainer, translateContainerState, translateSandbox, translateSandboxState } from "./translate.ts";
