// Events for people: combined, counted, limited, and brought to the API server.
export { eventsTo, type NodeEvents, type Recorders } from "./event-log.ts";
export { EventRecorder } from "./recorder.ts";
