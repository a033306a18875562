import type { Clock, Timer } from "../../ground/base/index.ts";
import { exitCodeOfKill, exitCodeOfTerm, type OnTerm, type OutputStream, type Step } from "./behaviour.ts";

export interface ProcessPorts {
  readonly clock: Clock;
  print(stream: OutputStream, text: string): void;
  write(path: string, text: string, mode: "replace" | "append"): void;
  /** Called once. */
  exited(code: number, reason: string | undefined): void;
}

/** A process that exists only as its behaviour: prints, waits, dies. */
export class FakeProcess {
  readonly #ports: ProcessPorts;
  readonly #onTerm: Exclude<OnTerm, "unhandled">;
  #steps: readonly Step[];
  #next = 0;
  #timer: Timer | undefined;
  #over = false;
  #handlesTerm = false;

  constructor(steps: readonly Step[], onTerm: Exclude<OnTerm, "unhandled">, ports: ProcessPorts) {
    this.#steps = steps;
    this.#onTerm = onTerm;
    this.#ports = ports;
  }

  /** Runs until the first wait. */
  start(): void {
    this.#run();
  }

  terminate(): void {
    if (this.#over || this.#handlesTerm || this.#onTerm === "ignore") return;
    if (this.#onTerm === "die") {
      this.exit(exitCodeOfTerm);
      return;
    }
    this.#handlesTerm = true;
    this.#timer?.cancel();
    this.#steps = this.#onTerm;
    this.#next = 0;
    this.#run();
  }

  kill(): void {
    this.exit(exitCodeOfKill);
  }

  exit(code: number, reason?: string): void {
    if (this.#over) return;
    this.#over = true;
    this.#timer?.cancel();
    this.#ports.exited(code, reason);
  }

  #run(): void {
    while (!this.#over) {
      const step = this.#steps[this.#next++] ?? { do: "exit", code: 0 };
      if (step.do === "sleepForever") return;
      if (step.do === "sleep") {
        this.#timer = this.#ports.clock.after(step.ms, () => this.#run());
        return;
      }
      this.#perform(step);
    }
  }

  #perform(step: Exclude<Step, { do: "sleep" | "sleepForever" }>): void {
    switch (step.do) {
      case "print":
        this.#ports.print(step.stream, step.text);
        break;
      case "write":
        this.#ports.write(step.path, step.text, step.mode);
        break;
      case "goTo":
        this.#next = step.step;
        break;
      case "exit":
        this.exit(step.code, step.reason);
        break;
    }
  }
}
