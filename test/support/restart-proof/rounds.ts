/** How the agent ends. */
export type Ending = "kill -9" | "SIGTERM" | "another binary";

/** What else goes wrong at the same time. */
export type Weather =
  | "calm"
  | "outage"
  | "outage at the start"
  | "server crash"
  | "runtime crash"
  | "runtime crash at the start";

export interface Round {
  readonly ending: Ending;
  readonly weather: Weather;
  /** When the agent ends, counted from the end of the round before. */
  readonly momentMs: number;
  /** How long it, or what it needs, is away before the next step. */
  readonly awayMs: number;
  /** How long what it needs is away once it has started again. */
  readonly stormMs: number;
  /** The next round begins without waiting for the agent to find its feet. */
  readonly isHasty: boolean;
}

const bad: readonly Weather[] = ["outage at the start", "runtime crash", "outage", "runtime crash at the start"];

/** Every ending as often as asked for and every weather in turn, half of the rounds in calm weather. */
export function planRounds(
  endings: Readonly<Record<Ending, number>>,
  random: () => number,
  alsoPossible: readonly Weather[],
): readonly Round[] {
  const inTurn = [...bad, ...alsoPossible];
  const wanted = Object.entries(endings) as [Ending, number][];
  const shuffled = wanted
    .flatMap(([ending, count]) => Array.from({ length: count }, () => ({ ending, at: random() })))
    .toSorted((a, b) => a.at - b.at);
  return shuffled.map(({ ending }, index) => ({
    ending,
    weather: index % 2 === 0 ? (inTurn[(index / 2) % inTurn.length] ?? "calm") : "calm",
    // Most ends come soon after the start, which takes about a second; some long after it.
    momentMs: random() < 0.6 ? random() * 1_500 : random() * 5_000,
    awayMs: random() ** 2 * 1_500,
    // An agent without an API server goes on with what it knows after 10 s; half of the outages are longer.
    stormMs: random() < 0.5 ? random() * 4_000 : 9_000 + random() * 5_000,
    isHasty: random() < 0.3,
  }));
}
