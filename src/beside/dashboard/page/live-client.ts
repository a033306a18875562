import { RefusedError, readRefusal } from "./refused.ts";
import { isSeen, onSeen, untilSeen } from "./seen.ts";
import { keyHeaders } from "./session-key.ts";

// Reads the agent's server-sent events with fetch: unlike EventSource it says why it was refused, and notices silence.
export interface LiveListener {
  onEvent(event: string, id: string | undefined, data: string): void;
  onOpen(): void;
  /** `status` 0: the agent could not be reached. */
  onLost(status: number, message: string): void;
}

/** The agent says something every 15 s; after so much silence the machine slept, or the agent is gone. */
const silentMs = 40_000;
/** A browser may ask by a connection that died while the machine slept; an agent that is there answers sooner. */
const unansweredMs = 10_000;
const firstRetryMs = 500;
const longestRetryMs = 5_000;

/** Follows until the page goes, whatever happens on the way. */
export async function followLive(listener: LiveListener): Promise<never> {
  let lastId: string | undefined;
  let retryMs = firstRetryMs;
  for (;;) {
    await untilSeen();
    try {
      await readOnce(lastId, listener, (id) => {
        lastId = id;
        retryMs = firstRetryMs;
      });
      listener.onLost(0, "the agent has closed the connection");
    } catch (error) {
      if (!isSeen()) continue;
      if (error instanceof RefusedError) listener.onLost(error.status, error.message);
      else listener.onLost(0, "the agent does not answer");
    }
    await new Promise((resolve) => setTimeout(resolve, retryMs));
    retryMs = Math.min(retryMs * 1.5, longestRetryMs);
  }
}

async function readOnce(lastId: string | undefined, listener: LiveListener, onId: (id: string) => void): Promise<void> {
  const cut = new AbortController();
  const stopListening = onSeen(() => cut.abort());
  let timer = setTimeout(() => cut.abort(), unansweredMs);
  try {
    const headers = { ...keyHeaders(), ...(lastId !== undefined && { "Last-Event-ID": lastId }) };
    const response = await fetch("api/live", { headers, signal: cut.signal });
    if (!response.ok || response.body === null) throw await readRefusal(response);
    listener.onOpen();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => cut.abort(), silentMs);
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) deliver(block, listener, onId);
    }
  } finally {
    stopListening();
    clearTimeout(timer);
    cut.abort();
  }
}

function deliver(block: string, listener: LiveListener, onId: (id: string) => void): void {
  let event = "";
  let id: string | undefined;
  let data = "";
  for (const line of block.split("\n")) {
    const [, field, value = ""] = /^(id|event|data): (.*)$/s.exec(line) ?? [];
    if (field === "id") id = value;
    else if (field === "event") event = value;
    else if (field === "data") data += value;
  }
  if (event === "") return;
  listener.onEvent(event, id, data);
  if (id !== undefined) onId(id);
}
