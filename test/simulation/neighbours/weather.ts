/** How often things go wrong at present, each from 0 to 1 per call. */
export interface Weather {
  /** Calls that are refused before anything was done. */
  refused: number;
  /** Calls that are carried out, but nobody learns of it. */
  lost: number;
  /** Calls that are never answered. */
  hung: number;
  /** Calls that take seconds. */
  slow: number;
  /** Events of a stream that are dropped, with the stream where it would otherwise promise to be whole. */
  dropped: number;
  doubled: number;
}

export const calm: Readonly<Weather> = { refused: 0, lost: 0, hung: 0, slow: 0, dropped: 0, doubled: 0 };
