import { useState } from "preact/hooks";
import type { DoctorView, FindingView, Tone } from "../../wire.ts";
import { useAsked } from "../asking.ts";
import { Ago, Card, Mark, Nothing } from "../parts/marks.tsx";
import { type Column, Table } from "../parts/table.tsx";

/** The worst first. */
const tones: Readonly<Record<FindingView["state"], Tone>> = {
  fail: "bad",
  unknown: "busy",
  warn: "busy",
  manual: "over",
  pass: "good",
  "n/a": "over",
};
/** As the command says them. */
const names: Readonly<Record<FindingView["state"], string>> = {
  fail: "Fails",
  unknown: "Unknown",
  warn: "Warning",
  manual: "For you to judge",
  pass: "Passes",
  "n/a": "Not applicable",
};
const order = Object.keys(tones) as FindingView["state"][];

export function DoctorPage() {
  // An examination takes a second or two of the machine: it is made when asked for.
  const { answer, problem, again } = useAsked<DoctorView>("doctor", 600_000);
  const [chosen, setChosen] = useState<FindingView["state"] | undefined>(undefined);
  if (answer === undefined) return <Nothing>{problem ?? "Examining the node…"}</Nothing>;
  const shown = answer.findings.filter(({ state }) => chosen === undefined || state === chosen);
  return (
    <>
      {problem !== undefined && <p class="notice">{problem}</p>}
      <p class="sub">
        <span>{answer.subject}</span>
        <span>
          examined <Ago at={answer.at} words=" ago" /> in {Math.round(answer.tookMs)} ms
        </span>
      </p>
      <div class="toolbar">
        <fieldset class="pills">
          <legend class="unseen">Which findings</legend>
          <button type="button" aria-pressed={chosen === undefined} onClick={() => setChosen(undefined)}>
            All <b>{answer.findings.length}</b>
          </button>
          {order.map((state) => (
            <button key={state} type="button" aria-pressed={chosen === state} onClick={() => setChosen(state)}>
              {names[state]} <b>{answer.findings.filter((finding) => finding.state === state).length}</b>
            </button>
          ))}
        </fieldset>
        <button type="button" class="plain" onClick={again}>
          Examine again
        </button>
      </div>
      <Card title="Findings" wide>
        <Table
          label="Findings"
          rows={shown}
          columns={columns}
          keyOf={({ id }) => id}
          sortedBy="Finding"
          empty="There are none of this kind."
        />
      </Card>
    </>
  );
}

const columns: readonly Column<FindingView>[] = [
  {
    name: "Finding",
    by: ({ state, id }) => `${order.indexOf(state)} ${id}`,
    cell: ({ state }) => <Mark tone={tones[state]}>{names[state]}</Mark>,
  },
  { name: "Check", by: ({ id }) => id, cell: ({ id, title }) => <Check id={id} title={title} />, class: "wrap" },
  { name: "Group", by: ({ group }) => group, cell: ({ group }) => group },
  { name: "Seen", cell: ({ seen, from }) => <Seen seen={seen} from={from} />, class: "wrap" },
  { name: "What mends it", cell: ({ fix, why, state }) => <Fix fix={fix} why={why} state={state} />, class: "wrap" },
];

function Check({ id, title }: { readonly id: string; readonly title: string }) {
  return (
    <>
      <b>{title}</b> <span class="muted">{id}</span>
    </>
  );
}

function Seen({ seen, from }: { readonly seen: string; readonly from: string }) {
  return (
    <>
      {seen}
      {from !== "" && !seen.includes(from) && <span class="muted"> ({from})</span>}
    </>
  );
}

function Fix({
  fix,
  why,
  state,
}: {
  readonly fix: string;
  readonly why: string;
  readonly state: FindingView["state"];
}) {
  if (state === "pass" || state === "n/a") return null;
  return (
    <>
      {fix !== "" && <code class="said">{fix}</code>}
      <span class="muted">{why}</span>
    </>
  );
}
