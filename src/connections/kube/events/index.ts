// Events for people: combined, counted, limited, and brought to the API server.
export { EventRecorder, type EventRecorderPorts } from "./recorder.ts";
