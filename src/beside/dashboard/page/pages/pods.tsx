import { useEffect, useRef, useState } from "preact/hooks";
import type { PodRow, Tone } from "../../wire.ts";
import { cores, inBytes, inMegabytes } from "../format.ts";
import { Meter } from "../parts/bar.tsx";
import { Ago, Mark, Until } from "../parts/marks.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { store, useStore } from "../store.ts";

const groups: readonly (readonly [string, readonly Tone[]])[] = [
  ["All", ["good", "busy", "bad", "over"]],
  ["Ready", ["good"]],
  ["On their way", ["busy"]],
  ["In trouble", ["bad"]],
  ["Completed", ["over"]],
];

export function PodsPage() {
  const { pods } = useStore();
  const [filter, setFilter] = useState("");
  const [group, setGroup] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  useKeys(input);
  const all = [...pods.values()];
  const tones = groups[group]?.[1] ?? [];
  const words = filter.toLowerCase().split(/\s+/);
  const shown = all.filter((row) => tones.includes(row.tone) && words.every((word) => textOf(row).includes(word)));
  return (
    <>
      <div class="toolbar">
        <fieldset class="pills">
          <legend class="unseen">Which pods</legend>
          {groups.map(([name, wanted], index) => (
            <button key={name} type="button" aria-pressed={index === group} onClick={() => setGroup(index)}>
              {name} <b>{all.filter(({ tone }) => wanted.includes(tone)).length}</b>
            </button>
          ))}
        </fieldset>
        <input
          ref={input}
          type="search"
          aria-label="Filter pods"
          placeholder="Filter by name, state, address…   /"
          value={filter}
          onInput={({ currentTarget }) => setFilter(currentTarget.value)}
        />
      </div>
      <section class="card wide" aria-label="Pods">
        <Table
          label="Pods"
          rows={shown}
          columns={podColumns}
          keyOf={({ uid }) => uid}
          sortedBy="Pod"
          empty={all.length === 0 ? "This node has no pods." : "No pod is like this."}
        />
      </section>
    </>
  );
}

function textOf({ name, namespace, status, ip, wait, from }: PodRow): string {
  return `${namespace}/${name} ${status} ${ip} ${wait?.reason ?? ""} ${from}`.toLowerCase();
}

function usageOf(row: PodRow): readonly [number | null, number | null] {
  return store.sample?.pods[row.uid] ?? [null, null];
}

const sources = { api: "", manifest: "static", mirror: "mirror" } as const;

const podColumns: readonly Column<PodRow>[] = [
  {
    name: "Pod",
    by: ({ namespace, name }) => `${name} ${namespace}`,
    cell: ({ uid, name, from }) => (
      <>
        <a class="row-link" href={`#/pods/${uid}`}>
          {name}
        </a>
        {sources[from] !== "" && <span class="tag">{sources[from]}</span>}
      </>
    ),
    class: "name",
  },
  { name: "Namespace", by: ({ namespace }) => namespace, cell: ({ namespace }) => namespace },
  { name: "State", by: ({ status }) => status, cell: ({ status, tone }) => <Mark tone={tone}>{status}</Mark> },
  {
    name: "Ready",
    by: ({ ready, wanted }) => ready - wanted,
    cell: ({ ready, wanted }) => `${ready}/${wanted}`,
    align: "right",
  },
  {
    name: "Restarts",
    by: ({ restarts }) => restarts,
    cell: ({ restarts, lastExit }) => (
      <>
        {restarts}
        {lastExit !== undefined && <small class="muted"> ({lastExit.text})</small>}
      </>
    ),
    align: "right",
  },
  { name: "CPU", by: (row) => usageOf(row)[0] ?? -1, cell: (row) => <Usage row={row} of="cpu" />, align: "right" },
  {
    name: "Memory",
    by: (row) => usageOf(row)[1] ?? -1,
    cell: (row) => <Usage row={row} of="memory" />,
    align: "right",
  },
  { name: "Waiting for", by: ({ wait }) => wait?.reason ?? "", cell: (row) => <WaitingFor row={row} />, class: "rest" },
  { name: "IP", by: ({ ip }) => ip, cell: ({ ip }) => ip },
  {
    name: "Age",
    by: ({ createdAt }) => -(createdAt ?? 0),
    cell: ({ createdAt }) => <Ago at={createdAt} />,
    align: "right",
  },
];

function Usage({ row, of }: { readonly row: PodRow; readonly of: "cpu" | "memory" }) {
  const [cpu, memory] = usageOf(row);
  const [value, limit, text] = of === "cpu" ? [cpu, row.cpuLimit, cores] : [memory, row.memoryLimit, inBytes];
  if (value === null) return <span class="muted">–</span>;
  if (limit === undefined) return <>{text(value)}</>;
  // Before the figure, so that those of a column stand below each other.
  return (
    <>
      <Meter value={value} limit={limit} text={`${text(value)} of ${text(limit)}`} /> {text(value)}
    </>
  );
}

function WaitingFor({ row }: { readonly row: PodRow }) {
  const { wait, doing, endsBy } = row;
  const pulled = store.sample?.pulls[row.uid];
  if (wait !== undefined) {
    // Beside the state, which says it already, there is no room to say it again.
    const said = wait.reason === row.status && wait.nextTryAt !== undefined ? "" : wait.reason;
    return (
      <span title={wait.message}>
        {said}
        {pulled !== undefined && <Far pulled={pulled} />}
        {wait.nextTryAt !== undefined && (
          <span class="muted">
            {said !== "" && ", "}next try <Until at={wait.nextTryAt} />
          </span>
        )}
      </span>
    );
  }
  if (endsBy !== undefined) {
    return (
      <span>
        end, at the latest <Until at={endsBy} />
      </span>
    );
  }
  if (doing === undefined) return <span class="muted">–</span>;
  return (
    <span class="muted">
      {doing.what}
      {pulled !== undefined && <Far pulled={pulled} />}
    </span>
  );
}

function Far({ pulled: [bytes, whole] }: { readonly pulled: readonly [number, number] }) {
  return (
    <>
      , {inMegabytes(bytes)} of {inMegabytes(whole)}
    </>
  );
}

/** `/` goes to the filter, j and k or the arrows from row to row. */
function useKeys(input: { readonly current: HTMLInputElement | null }): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
      if (event.key === "/" && !isTyping) {
        event.preventDefault();
        input.current?.focus();
        return;
      }
      const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
      if (step === undefined || (isTyping && event.key.length === 1)) return;
      const links = [...document.querySelectorAll<HTMLAnchorElement>("a.row-link")];
      const at = links.indexOf(document.activeElement as HTMLAnchorElement);
      const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step];
      if (next === undefined) return;
      event.preventDefault();
      next.focus();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [input]);
}
