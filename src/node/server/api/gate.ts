import type { IncomingMessage } from "node:http";

/** Decides who may ask what. `path` is clean and decoded. */
export interface Gate {
  /** undefined: come in. */
  refuse(request: IncomingMessage, path: string): Promise<Refusal | undefined>;
}

export interface Refusal {
  readonly status: 401 | 403 | 500;
  readonly text: string;
}

/** For the port that anybody may ask, because it shows little and changes nothing. */
export const openGate: Gate = { refuse: async () => undefined };
