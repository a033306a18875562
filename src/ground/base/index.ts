// Ground: time, tasks, queues, logging. Knows nothing of Kubernetes.
export { aFewAtOnce, allEnded, mapAtMost, settleAtMost } from "./at-most.ts";
export { Backoff, type BackoffSettings } from "./backoff.ts";
export { type Clock, systemClock, type Timer } from "./clock.ts";
export { CollectorLoop } from "./collector-loop.ts";
export { cutBytes, cutText } from "./cut-text.ts";
export { formatDuration, parseDuration } from "./duration.ts";
export { codeOf, explain, hasCode, isAbort, isMissing, messageOf } from "./errors.ts";
export { FairLimiter, type FairLimits } from "./fair-limiter.ts";
export { FieldReader } from "./field-reader.ts";
export { goQuote } from "./go-quote.ts";
export { type GrpcCode, grpcCodeOf, grpcNumberOf } from "./grpc-codes.ts";
export { destroySession } from "./http2-session.ts";
export { KeyedWorkers } from "./keyed-workers.ts";
export {
  type Blocker,
  type FinishedStep,
  Ledger,
  type LedgerEntry,
  type LedgerSpan,
  type LedgerStep,
  type LedgerView,
} from "./ledger.ts";
export { Limiter } from "./limiter.ts";
export { lingering } from "./lingering-signal.ts";
export { type LogFields, type Logger, silentLogger } from "./log.ts";
export { toDescriptor } from "./log-stream.ts";
export { defaultLogSettings, type LogSettings, LogWriter } from "./log-writer.ts";
export { type Outcome, outcomeOf } from "./outcome.ts";
export { inOwnProcess } from "./own-process.ts";
export { Pause } from "./pause.ts";
export { type ProgramCommand, ProgramError, runProgram, runToEnd } from "./run-program.ts";
export { saveFile, savePrivateFile, syncDirectory } from "./saved-file.ts";
export { SerialByKey } from "./serial-by-key.ts";
export { SharedWork } from "./shared-work.ts";
export { LinkedSignal, never, onAbort, unlessAborted, untilAborted, waitFor, withDeadline } from "./signals.ts";
export { type SlotPolicy, Slots, type SlotWaiter } from "./slots.ts";
export { systemNames } from "./system-names.ts";
export { table } from "./table.ts";
export { TaskScope } from "./task-scope.ts";
export { TokenBucket } from "./token-bucket.ts";
export { Topic } from "./topic.ts";
export { whenDifferent } from "./when-different.ts";
