import { useState } from "preact/hooks";
import type { StepView } from "../../wire.ts";
import { absolute, shortSpan } from "../format.ts";

const firstShown = 40;

interface Drawn {
  readonly key: string;
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly step: StepView | undefined;
}

/**
 * What was done for a pod, step below step over time. Where nothing was done for a while, the gap is a row of its own:
 * it is the agent, or waiting.
 */
export function Waterfall({ steps, now }: { readonly steps: readonly StepView[]; readonly now: number }) {
  const [isWhole, setWhole] = useState(false);
  const start = startOf(steps);
  const shown = isWhole ? steps : steps.filter(({ startedAt }) => startedAt <= start.until).slice(0, firstShown);
  const begin = shown[0]?.startedAt ?? now;
  const end = Math.max(begin + 1, ...shown.map((step) => endOf(step, now)));
  const rows = withGaps(shown, now, (end - begin) * 0.02);
  const left = (at: number): number => ((at - begin) / (end - begin)) * 100;
  return (
    <>
      <div class="waterfall">
        <ol>
          {rows.map(({ key, name, from, to, step }) => (
            <li key={key} class={step === undefined ? "between" : step.outcome}>
              <span class="step-name" title={name}>
                {name}
              </span>
              <span class="step-lane">
                <span
                  class={to === from ? "step-bar moment" : "step-bar"}
                  style={{ left: `${left(from)}%`, width: `${Math.max(left(to) - left(from), 0.4)}%` }}
                  title={absolute(from)}
                />
                {isShort(step) && <Note text={step?.message ?? ""} from={left(from)} to={left(to)} />}
              </span>
              <span class="step-time">{timeText(from, to, step)}</span>
              {step?.message && !isShort(step) && <span class="step-message">{step.message}</span>}
            </li>
          ))}
        </ol>
      </div>
      {(isWhole || shown.length < steps.length) && (
        <button type="button" class="plain" onClick={() => setWhole(!isWhole)}>
          {isWhole ? "Show the start alone" : `Show all ${steps.length} steps since`}
        </button>
      )}
    </>
  );
}

const longestNote = 60;

/** What is short stands beside its bar; the rest, and why something failed, below. */
function isShort(step: StepView | undefined): boolean {
  return step?.outcome !== "failed" && step?.message !== undefined && step.message.length <= longestNote;
}

/** On the side of the bar where there is more room. */
function Note({ text, from, to }: { readonly text: string; readonly from: number; readonly to: number }) {
  const place = to < 60 ? { left: `calc(${to}% + 8px)`, right: "4px" } : { right: `calc(${100 - from}% + 8px)` };
  return (
    <span class="step-note" style={place} title={text}>
      {text}
    </span>
  );
}

/** The first start: from first sight to ready, or as far as it got. */
function startOf(steps: readonly StepView[]): { readonly until: number } {
  const reached = (wanted: string): number | undefined => steps.find(({ step }) => step === wanted)?.startedAt;
  return { until: reached("ready") ?? reached("running") ?? Number.POSITIVE_INFINITY };
}

function endOf({ startedAt, endedAt, outcome }: StepView, now: number): number {
  return endedAt ?? (outcome === "running" ? now : startedAt);
}

function withGaps(steps: readonly StepView[], now: number, shortest: number): readonly Drawn[] {
  const rows: Drawn[] = [];
  let reached = steps[0]?.startedAt ?? 0;
  for (const [index, step] of steps.entries()) {
    if (step.startedAt - reached > shortest) {
      rows.push({ key: `gap ${index}`, name: "agent and waiting", from: reached, to: step.startedAt, step: undefined });
    }
    const to = endOf(step, now);
    const name = step.subject === "" ? step.step : `${step.step} ${step.subject}`;
    rows.push({ key: `${index} ${step.startedAt}`, name, from: step.startedAt, to, step });
    reached = Math.max(reached, to);
  }
  return rows;
}

function timeText(from: number, to: number, step: StepView | undefined): string {
  if (step?.outcome === "running") return `${shortSpan(to - from)} so far`;
  const times = step?.repeats === undefined ? "" : ` × ${step.repeats}`;
  const took = to === from ? "" : shortSpan(to - from);
  return step?.outcome === "failed" ? `failed ${took}${times}` : `${took}${times}`;
}
