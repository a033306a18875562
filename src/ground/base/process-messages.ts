import type { ProgramResult } from "./run-program.ts";

/** What the thread is to run. All of it is copied on its way. */
export type ProcessJob = ProgramJob | ModuleJob;

/** A program that is run to its end; the result says how it ended. */
export interface ProgramJob {
  readonly type: "program";
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly input?: string | undefined;
  readonly longestAnswer: number;
  readonly endBy: "SIGKILL" | "SIGTERM";
  readonly withChildren: boolean;
}

/** A module of ours that is sent `input` and answers with messages; the result is how its process ended. */
export interface ModuleJob {
  readonly type: "module";
  readonly path: string;
  readonly input: object;
  /** Undefined: that of this process. */
  readonly env?: Readonly<Record<string, string>> | undefined;
}

export type ResultOf<Job extends ProcessJob> = Job extends ProgramJob ? ProgramResult : string;

export type ProcessOrder =
  | { readonly type: "start"; readonly id: number; readonly job: ProcessJob }
  /** Nobody wants it any more. */
  | { readonly type: "end"; readonly id: number };

/** `id`: of the process that it is about. */
export type ProcessNews =
  /** The thread has loaded its code. */
  | { readonly type: "ready" }
  /** The process is being started no more: it runs, or can't. */
  | { readonly id: number; readonly type: "begun" | "told to end" }
  | { readonly id: number; readonly type: "message"; readonly message: unknown }
  | { readonly id: number; readonly type: "result"; readonly result: ProgramResult | string }
  | { readonly id: number; readonly type: "not started" | "failure"; readonly failure: SentFailure }
  /** It has really ended, or never began. */
  | { readonly id: number; readonly type: "gone" };

/** An error on its way between threads, where codes and causes get lost. */
export interface SentFailure {
  readonly message: string;
  readonly code: string | undefined;
}
