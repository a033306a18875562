import type { Clock } from "../../../ground/base/index.ts";
import { AnswerError } from "../api/answer-error.ts";
import type { LineFilter } from "./decoder.ts";
import { isBefore, type Moment, momentOf, parseMoment } from "./line-time.ts";

export interface LogOptions extends LineFilter {
  readonly follow: boolean;
  readonly previous: boolean;
  readonly tailLines: number | undefined;
  readonly limitBytes: number | undefined;
}

const undecodable = (): AnswerError => new AnswerError(400, '{"message": "Unable to decode query."}');
const invalid = (): AnswerError => new AnswerError(422, '{"message": "Invalid request."}');

/** The query of /containerLogs, as v1 PodLogOptions are written in one. */
export function logOptions(query: URLSearchParams, splitStreams: boolean, clock: Clock): LogOptions {
  const legacyTail = query.get("tail");
  const tailText = legacyTail === null ? query.get("tailLines") : legacyTail;
  const tailLines = legacyTail === "all" ? undefined : integer(tailText);
  const limitBytes = integer(query.get("limitBytes"));
  const sinceSeconds = integer(query.get("sinceSeconds"));
  const sinceTime = time(query.get("sinceTime"));
  const stream = query.get("stream") || "All";
  if (stream !== "All" && stream !== "Stdout" && stream !== "Stderr") throw invalid();
  if (
    (tailLines ?? 0) < 0 ||
    (limitBytes ?? 1) < 1 ||
    (sinceSeconds ?? 1) < 1 ||
    (sinceSeconds !== undefined && sinceTime !== undefined) ||
    (stream !== "All" && tailLines !== undefined)
  ) {
    throw invalid();
  }
  if (stream !== "All" && !splitStreams) {
    throw new AnswerError(
      400,
      `unable to return the given log stream: ${JSON.stringify(stream)}. Please enable PodLogsQuerySplitStreams feature gate in kubelet`,
    );
  }
  const ago = sinceSeconds === undefined ? undefined : momentOf(clock.now() - sinceSeconds * 1000);
  return {
    follow: flag(query.get("follow")),
    previous: flag(query.get("previous")),
    timestamps: flag(query.get("timestamps")),
    stream,
    tailLines,
    limitBytes,
    since: later(ago, sinceTime),
  };
}

/** Only absence, `false` and `0` mean no, as everywhere in Kubernetes' queries. */
function flag(text: string | null): boolean {
  return text !== null && text !== "false" && text !== "0";
}

function integer(text: string | null): number | undefined {
  if (text === null || text === "") return undefined;
  if (!/^[+-]?\d{1,18}$/.test(text)) throw undecodable();
  return Number(text);
}

function time(text: string | null): Moment | undefined {
  if (text === null || text === "" || text === "null") return undefined;
  const moment = parseMoment(text);
  if (moment === undefined) throw undecodable();
  return moment;
}

function later(a: Moment | undefined, b: Moment | undefined): Moment | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return isBefore(a, b) ? b : a;
}
