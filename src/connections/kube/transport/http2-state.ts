/**
 * The life of an HTTP/2 connection.
 *
 *   open -> retiring -> broken        no way back: whoever needs another one dials
 *
 * open      takes requests, as many at a time as its peer allows
 * retiring  ends what is under way and takes nothing new: it was replaced, or its peer has said goodbye
 * broken    brings nothing any more
 *
 * Besides, Node may have ended the session already; only it knows.
 */
export type Http2State =
  | { readonly step: "open"; readonly mostStreams: number }
  | { readonly step: "retiring" }
  | { readonly step: "broken"; readonly by: Error };

export type Http2Event =
  /** The peer has said how many streams it allows; undefined: it sets no limit of its own. */
  | { readonly type: "settings"; readonly mostStreams: number | undefined }
  | { readonly type: "retire" }
  | { readonly type: "break"; readonly by: Error };

/** What a peer allows before it has said so. */
const streamsBeforeSettings = 100;

export const newlyOpen: Http2State = { step: "open", mostStreams: streamsBeforeSettings };

/** The only way from one state to another. */
export function nextHttp2State(state: Http2State, event: Http2Event): Http2State {
  // The first cause is the true one; what follows it are its consequences.
  if (state.step === "broken") return state;
  switch (event.type) {
    case "settings":
      return state.step === "open" ? { step: "open", mostStreams: event.mostStreams ?? streamsBeforeSettings } : state;
    case "retire":
      return { step: "retiring" };
    case "break":
      return { step: "broken", by: event.by };
  }
}
