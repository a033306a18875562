// Docker's Engine API over its unix socket: requests with bounds, answers as types.
export type {
  EngineExec,
  EngineImage,
  EngineInfo,
  EngineMount,
  EngineResources,
  InspectedContainer,
  ListedContainer,
} from "./answers.ts";
export { Engine, type EngineCall, type TerminalSize } from "./engine.ts";
export { EngineError, EngineUnavailable, isAbsent, isClash } from "./errors.ts";
export type { EngineEvent } from "./events.ts";
export { type Fields, fieldsOf, numberIn, objectIn, textIn } from "./fields.ts";
export { FrameReader } from "./frames.ts";
