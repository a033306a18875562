import type { ServerResponse } from "node:http";
import { type Clock, messageOf, never, withDeadline } from "../../ground/base/index.ts";
import { sendJson, sendText } from "./http.ts";

/** A runtime that does not answer must not keep a person waiting for ever. */
const withinMs = 30_000;

/** Answers with what the agent would do; what it can't say is said in a sentence. */
export async function answerPlan(
  response: ServerResponse,
  clock: Clock,
  plan: (signal: AbortSignal) => Promise<unknown>,
): Promise<void> {
  const late = (): Error => new Error(`no answer within ${withinMs / 1000} s`);
  try {
    sendJson(response, await withDeadline(clock, withinMs, late, never, plan));
  } catch (error) {
    const isQuestion = error instanceof Error && error.name === "DryRunQuestionError";
    sendText(response, isQuestion ? 400 : 503, `${messageOf(error)}\n`);
  }
}
