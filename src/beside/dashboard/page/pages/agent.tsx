import { useEffect, useRef, useState } from "preact/hooks";
import type { AgentView, CallView } from "../../wire.ts";
import { useAsked } from "../asking.ts";
import { cores, count, inBytes, percent, shortSpan } from "../format.ts";
import { Ago, Card, Facts, Mark, Nothing } from "../parts/marks.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { store } from "../store.ts";

export function AgentPage() {
  const { answer, problem } = useAsked<AgentView>("agent", 2_000);
  if (answer === undefined) return <Nothing>{problem ?? "Asking the agent…"}</Nothing>;
  const { runtimeCalls, apiCalls, apiRequestsPerMinute, watches, log, resources } = answer;
  const { Timeout: timers = 0, ...handles } = resources;
  return (
    <>
      {problem !== undefined && <p class="notice">{problem}. This is what was known last.</p>}
      <div class="grid">
        <Card title="Process">
          <Facts
            rows={[
              ["Up for", <Ago key="age" at={store.node?.startedAt} />],
              ["PID", answer.pid],
              ["CPU", answer.cpu === null ? "–" : `${cores(answer.cpu)} of a core`],
              ["Memory", inBytes(answer.rssBytes)],
              ["Heap", `${inBytes(answer.heapUsedBytes)} of ${inBytes(answer.heapTotalBytes)}`],
              ["Open files", count(answer.openFiles)],
              ["Verbosity of the log", `-v=${answer.verbosity}`],
            ]}
          />
        </Card>
        <Card title="Event loop">
          <Facts
            rows={[
              ["Busy", answer.loopBusy === null ? "–" : percent(answer.loopBusy * 100)],
              ["Timers come late by", answer.loopDelayMs === null ? "–" : shortSpan(answer.loopDelayMs)],
              ["Timers", count(timers)],
              [
                "Handles",
                Object.entries(handles)
                  .map(([name, amount]) => `${amount}\u00a0${name}`)
                  .join(", "),
              ],
            ]}
          />
        </Card>
        <Card
          title="Watches"
          note={apiRequestsPerMinute === null ? undefined : `${apiRequestsPerMinute.toFixed(1)} requests a minute`}
        >
          {watches.length === 0 ? (
            <Nothing>This agent has no API server.</Nothing>
          ) : (
            <Facts
              rows={watches.map(({ name, heardAt, problem: why }) => [
                name,
                why === undefined ? (
                  <Ago key={name} at={heardAt} words=" ago" />
                ) : (
                  <Mark key={name} tone="bad">
                    {why}
                  </Mark>
                ),
              ])}
            />
          )}
        </Card>
        <Card title="Calls to the runtime" note="since the agent was started" wide>
          <Calls label="Calls to the runtime" calls={runtimeCalls} />
        </Card>
        <Card title="Requests to the API server" note="since the agent was started" wide>
          <Calls label="Requests to the API server" calls={apiCalls} />
        </Card>
        <Card title="Log" note={`the last ${log.length} lines`} wide>
          <AgentLog lines={log} />
        </Card>
      </div>
    </>
  );
}

function Calls({ label, calls }: { readonly label: string; readonly calls: readonly CallView[] }) {
  return (
    <Table
      label={label}
      rows={calls}
      columns={callColumns}
      keyOf={({ name }) => name}
      sortedBy="Call"
      empty="There were none yet."
    />
  );
}

const atMost = (seconds: number | null): string => (seconds === null ? "–" : `≤ ${shortSpan(seconds * 1000)}`);

const callColumns: readonly Column<CallView>[] = [
  { name: "Call", cell: ({ name }) => name, by: ({ name }) => name, class: "name" },
  { name: "Count", cell: ({ count: amount }) => amount, by: ({ count: amount }) => amount, align: "right" },
  {
    name: "Failed",
    cell: ({ failed }) => (failed === 0 ? 0 : <Mark tone="bad">{failed}</Mark>),
    by: ({ failed }) => failed,
    align: "right",
  },
  { name: "Half took", cell: ({ p50 }) => atMost(p50), by: ({ p50 }) => p50 ?? 0, align: "right" },
  { name: "99 % took", cell: ({ p99 }) => atMost(p99), by: ({ p99 }) => p99 ?? 0, align: "right" },
];

function AgentLog({ lines }: { readonly lines: readonly string[] }) {
  const [search, setSearch] = useState("");
  const place = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const shown = search === "" ? lines : lines.filter((line) => line.toLowerCase().includes(search.toLowerCase()));
  useEffect(() => {
    const element = place.current;
    if (element !== null && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [lines]);
  return (
    <>
      <div class="toolbar">
        <input
          type="search"
          aria-label="Search in the agent's log"
          placeholder="Search…"
          value={search}
          onInput={({ currentTarget }) => setSearch(currentTarget.value)}
        />
      </div>
      <div
        ref={place}
        class="log wraps short"
        role="log"
        aria-label="The agent's log"
        aria-live="off"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard.
        tabIndex={0}
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
          isAtEnd.current = scrollHeight - scrollTop - clientHeight < 40;
        }}
      >
        {shown.map((line, index) => (
          <div key={`${index} ${line}`} class={/^[EF]/.test(line) ? "line own" : "line"}>
            <span class="text">{line}</span>
          </div>
        ))}
      </div>
    </>
  );
}
