import type { ApiView, ConditionView, HealthView, NodeOverview, NodeSeries } from "../../wire.ts";
import { nodeSeries } from "../../wire.ts";
import { absolute, cores, count, inBytes, percent } from "../format.ts";
import { Bar } from "../parts/bar.tsx";
import { Chart } from "../parts/chart.tsx";
import { Ago, Card, Facts, Mark, Nothing, PodLink, Until } from "../parts/marks.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { store, useStore } from "../store.ts";

export function NodePage() {
  const { node, health } = useStore();
  if (node === undefined) return <Nothing>Waiting for the agent…</Nothing>;
  return (
    <>
      <Headline node={node} health={health} />
      <div class="grid">
        <Card title="Resources" wide>
          <Resources node={node} />
        </Card>
        <Charts node={node} />
        <div class="columns">
          <Card title="Latest warnings">
            <Warnings node={node} />
          </Card>
          <div>
            <Card title="API server">
              <ApiLink api={node.api} />
            </Card>
            <Card title="Machine">
              <Facts
                rows={[
                  ["Doctor", <Finding key="doctor" node={node} />],
                  ["Runtime", node.runtime && `${node.runtime.name} ${node.runtime.version}`],
                  ["nodelet", `${node.version} (Kubernetes ${node.kubeletVersion})`],
                  ["System", node.os],
                  ["Kernel", `${node.kernel} ${node.architecture}`],
                  ["Processors", count(node.cpus)],
                  ["Memory", inBytes(node.memoryBytes)],
                  ["Cgroups", `version ${node.cgroupVersion}`],
                  ["Agent up for", <Ago key="agent" at={node.startedAt} />],
                  ["Machine up for", <Ago key="boot" at={node.bootedAt} />],
                ]}
              />
            </Card>
          </div>
        </div>
        <Card title="Conditions" wide>
          <Table
            label="Conditions"
            rows={node.conditions}
            columns={conditionColumns}
            keyOf={({ type }) => type}
            empty="The node has no conditions yet."
          />
        </Card>
        <Card title="Health checks" note="with the age of the last proof" wide>
          <Table
            label="Health checks"
            rows={health}
            columns={healthColumns}
            keyOf={({ name }) => name}
            empty="No part has spoken yet."
          />
        </Card>
      </div>
    </>
  );
}

function Headline({ node, health }: { readonly node: NodeOverview; readonly health: readonly HealthView[] }) {
  const ready = node.conditions.find(({ type }) => type === "Ready");
  const troubled = health.filter(({ state }) => state !== "ok");
  const pods = [...store.pods.values()];
  const isReady = ready?.status === "True";
  return (
    <div class="headline" aria-live="polite">
      <p class="big">
        <Mark tone={isReady ? "good" : "bad"}>{isReady ? "Ready" : "Not ready"}</Mark>
        <span>
          {pods.length} {pods.length === 1 ? "pod" : "pods"}, {pods.filter(({ tone }) => tone === "good").length}{" "}
          running and ready
        </span>
      </p>
      {!isReady && ready !== undefined && <p>{ready.message}</p>}
      {troubled.map(({ name, text, state }) => (
        <p key={name}>
          <Mark tone={state === "failed" ? "bad" : "busy"}>{name}</Mark> {text}
        </p>
      ))}
    </div>
  );
}

const names = { cpu: "CPU", memory: "Memory", storage: "Storage", pods: "Pods", pids: "Processes" } as const;
const texts = { cpu: cores, memory: inBytes, storage: inBytes, pods: count, pids: count } as const;

function Resources({ node }: { readonly node: NodeOverview }) {
  const used = {
    cpu: latest("cpu"),
    memory: latest("memory"),
    storage: latest("diskUsed"),
    // Each takes one place, whether it asks for it or not.
    pods: node.amounts.find(({ name }) => name === "pods")?.requested,
    pids: latest("pids"),
  };
  return (
    <div class="bars">
      {node.amounts.map(({ name, capacity, allocatable, requested }) => (
        <Bar
          key={name}
          label={names[name]}
          used={used[name]}
          requested={name === "pods" ? undefined : requested}
          whole={capacity ?? allocatable}
          allocatable={allocatable}
          text={texts[name]}
        />
      ))}
    </div>
  );
}

function latest(series: NodeSeries): number | undefined {
  return store.sample?.node[nodeSeries.indexOf(series)] ?? undefined;
}

function Charts({ node }: { readonly node: NodeOverview }) {
  const { history, historyFrom: from, sampledSince } = store;
  const column = (name: NodeSeries) => history.map((row) => row[nodeSeries.indexOf(name)] ?? null);
  const times = column("at");
  const shared = { times, from } as const;
  const rate = (value: number): string => `${inBytes(value)}/s`;
  const hasPressure = column("cpuPressure").some((value) => value !== null);
  return (
    <section class="card wide" aria-label="Charts">
      <header>
        <h2>Live</h2>
        <span class="muted">
          {sampledSince === undefined
            ? "measured while somebody looks"
            : `measured every 2 s since ${absolute(sampledSince).slice(11)}, because somebody looks`}
        </span>
      </header>
      <div class="charts">
        <Chart
          {...shared}
          title="CPU"
          smallest={0.001}
          text={cores}
          limit={node.cpus}
          lines={[{ label: "used", colour: 1, fill: true, values: column("cpu") }]}
        />
        <Chart
          {...shared}
          title="Memory"
          text={inBytes}
          isBytes
          limit={node.memoryBytes}
          lines={[{ label: "used", colour: 2, fill: true, values: column("memory") }]}
        />
        {hasPressure && (
          <Chart
            {...shared}
            title="Pressure (time lost waiting)"
            text={percent}
            lines={[
              { label: "CPU", colour: 1, values: column("cpuPressure") },
              { label: "memory", colour: 2, values: column("memoryPressure") },
              { label: "I/O", colour: 3, values: column("ioPressure") },
            ]}
          />
        )}
        <Chart
          {...shared}
          title="Disk"
          text={rate}
          isBytes
          lines={[
            { label: "read", colour: 3, values: column("readRate") },
            { label: "written", colour: 4, values: column("writeRate") },
          ]}
        />
        <Chart
          {...shared}
          title="Network"
          text={rate}
          isBytes
          lines={[
            { label: "received", colour: 1, values: column("receiveRate") },
            { label: "sent", colour: 4, values: column("sendRate") },
          ]}
        />
      </div>
    </section>
  );
}

export const conditionColumns: readonly Column<ConditionView>[] = [
  { name: "Condition", cell: ({ type, tone }) => <Mark tone={tone}>{type}</Mark> },
  { name: "Status", cell: ({ status }) => status },
  { name: "Reason", cell: ({ reason }) => reason },
  { name: "Message", cell: ({ message }) => message, class: "wrap" },
  { name: "Since", cell: ({ since }) => <Ago at={since} />, align: "right" },
];

const healthTones = { ok: "good", waiting: "busy", failed: "bad" } as const;

const healthColumns: readonly Column<HealthView>[] = [
  { name: "Check", cell: ({ name, state }) => <Mark tone={healthTones[state]}>{name}</Mark> },
  { name: "State", cell: ({ state }) => state },
  { name: "What it says", cell: ({ text }) => text, class: "wrap" },
  { name: "Since", cell: ({ since }) => <Ago at={since} />, align: "right" },
  { name: "Last proof", cell: ({ provenAt }) => <Ago at={provenAt} words=" ago" />, align: "right" },
];

function Warnings({ node }: { readonly node: NodeOverview }) {
  if (node.warnings.length === 0) return <Nothing>No warnings since the agent was started.</Nothing>;
  return (
    <ul class="list">
      {node.warnings.map(({ at, reason, message, about, uid, times }) => (
        <li key={`${about}${reason}${message}`}>
          <div>
            <Mark tone="bad">{reason}</Mark> <PodLink uid={uid}>{about}</PodLink>
            {times > 1 && <span class="muted"> {times} times</span>}
            <span class="muted push">
              <Ago at={at} words=" ago" />
            </span>
          </div>
          <p class="clip">{message}</p>
        </li>
      ))}
    </ul>
  );
}

function ApiLink({ api }: { readonly api: ApiView }) {
  if (api.state === "alone") return <Nothing>This agent has no API server: its pods come from manifests.</Nothing>;
  const isAway = api.state === "away";
  return (
    <Facts
      rows={[
        [
          "State",
          <Mark key="state" tone={isAway ? "bad" : "good"}>
            {isAway ? "away" : "connected"}
          </Mark>,
        ],
        ...(isAway ? ([["Problem", api.problem ?? ""]] as const) : []),
        ...(isAway
          ? ([
              ["Next try", api.nextTryAt === undefined ? "under way" : <Until key="next" at={api.nextTryAt} />],
            ] as const)
          : []),
        [isAway ? "Away for" : "Last heard", <Ago key="heard" at={api.heardAt} words={isAway ? "" : " ago"} />],
        ["Last lease", <Ago key="lease" at={api.leaseAt} words=" ago" />],
        ...(api.leaseProblem === undefined ? [] : ([["Lease problem", api.leaseProblem]] as const)),
        ["Last status", <Ago key="status" at={api.statusAt} words=" ago" />],
      ]}
    />
  );
}

/** The doctor is asked on his own page. */
function Finding({ node: { finding } }: { readonly node: NodeOverview }) {
  if (finding === undefined) return <a href="#/doctor">examine the node</a>;
  const isFine = finding.state === "pass" || finding.state === "n/a";
  return (
    <a href="#/doctor">
      {isFine ? "all is well" : <Mark tone={finding.state === "fail" ? "bad" : "busy"}>{finding.title}</Mark>}
    </a>
  );
}
