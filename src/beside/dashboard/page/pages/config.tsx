import { useState } from "preact/hooks";
import type { ConfigView, SettingView } from "../../wire.ts";
import { useAsked } from "../asking.ts";
import { Ago, Card, Mark, Nothing } from "../parts/marks.tsx";
import { type Column, Table } from "../parts/table.tsx";

type Gate = ConfigView["gates"][number];

export function ConfigPage() {
  const { answer, problem } = useAsked<ConfigView>("config", 30_000);
  const [filter, setFilter] = useState("");
  const [onlySet, setOnlySet] = useState(false);
  if (answer === undefined) return <Nothing>{problem ?? "Asking the agent…"}</Nothing>;
  const wanted = filter.toLowerCase();
  const settings = answer.settings.filter(
    ({ name, value, isSet }) => (isSet || !onlySet) && `${name} ${value}`.toLowerCase().includes(wanted),
  );
  const gates = answer.gates.filter(
    ({ name, enabled, default: usual }) => (enabled !== usual || !onlySet) && name.toLowerCase().includes(wanted),
  );
  const changed = answer.files.filter(({ isNewer }) => isNewer);
  return (
    <>
      {changed.map(({ path, changedAt }) => (
        <p key={path} class="notice">
          {path} {changedAt === undefined ? "is gone" : "was changed"} since the agent was started
          {changedAt !== undefined && (
            <>
              {" "}
              (<Ago at={changedAt} words=" ago" />)
            </>
          )}
          ; a restart would take it up.
        </p>
      ))}
      <div class="toolbar">
        <fieldset class="pills">
          <legend class="unseen">Which settings</legend>
          <button type="button" aria-pressed={!onlySet} onClick={() => setOnlySet(false)}>
            All <b>{answer.settings.length}</b>
          </button>
          <button type="button" aria-pressed={onlySet} onClick={() => setOnlySet(true)}>
            Set by somebody <b>{answer.settings.filter(({ isSet }) => isSet).length}</b>
          </button>
        </fieldset>
        <input
          type="search"
          aria-label="Filter settings"
          placeholder="Filter by name or value…"
          value={filter}
          onInput={({ currentTarget }) => setFilter(currentTarget.value)}
        />
      </div>
      <div class="grid">
        <Card title="Settings" wide>
          <Table
            label="Settings"
            rows={settings}
            columns={settingColumns}
            keyOf={({ name }) => name}
            sortedBy="Setting"
            empty="No setting is like this."
          />
        </Card>
        <Card title="Feature gates" wide>
          <Table
            label="Feature gates"
            rows={gates}
            columns={gateColumns}
            keyOf={({ name }) => name}
            sortedBy="Gate"
            empty="No gate is like this."
          />
        </Card>
      </div>
    </>
  );
}

const effects = { yes: "", "not yet": "no part acts on this yet", none: "without effect, as in the kubelet" } as const;

const settingColumns: readonly Column<SettingView>[] = [
  { name: "Setting", cell: ({ name }) => name, by: ({ name }) => name.replace(/^--/, ""), class: "name" },
  {
    name: "Value",
    cell: ({ value, isSet }) => <code class={isSet ? "own" : ""}>{value === "" ? "–" : value}</code>,
    class: "wrap slim",
  },
  {
    name: "Default",
    cell: ({ default: usual }) => <code class="muted">{usual === "" ? "–" : usual}</code>,
    class: "wrap slim",
  },
  {
    name: "From",
    cell: ({ origin }) => origin,
    by: ({ isSet, origin }) => `${isSet ? 0 : 1} ${origin}`,
    class: "wrap slim",
  },
  {
    name: "Effect",
    cell: ({ effect }) => (effects[effect] === "" ? "" : <Mark tone="busy">{effects[effect]}</Mark>),
    by: ({ effect }) => effect,
    class: "wrap slim",
  },
];

const gateColumns: readonly Column<Gate>[] = [
  { name: "Gate", cell: ({ name }) => name, by: ({ name }) => name, class: "name" },
  {
    name: "State",
    cell: ({ enabled }) => <Mark tone={enabled ? "good" : "over"}>{enabled ? "on" : "off"}</Mark>,
    by: ({ enabled }) => Number(enabled),
  },
  { name: "Default", cell: ({ default: usual }) => (usual ? "on" : "off"), by: ({ default: usual }) => Number(usual) },
  { name: "Stage", cell: ({ stage }) => stage, by: ({ stage }) => stage },
];
