import { useState } from "preact/hooks";
import type { CgroupView, MachineView, ProcessView } from "../../wire.ts";
import { useAsked } from "../asking.ts";
import { cores, count, inBytes, percent } from "../format.ts";
import { Bar, Meter } from "../parts/bar.tsx";
import { Ago, Card, Facts, Nothing, PodLink } from "../parts/marks.tsx";
import { type Column, Table } from "../parts/table.tsx";

type Interface = MachineView["interfaces"][number];

export function MachinePage() {
  const { answer, problem } = useAsked<MachineView>("machine", 2_000);
  const [chosen, setChosen] = useState<string | undefined>(undefined);
  if (answer === undefined) return <Nothing>{problem ?? "Asking the agent…"}</Nothing>;
  const { cgroups, leftOut, interfaces, fileSystems, numa } = answer;
  return (
    <>
      {problem !== undefined && <p class="notice">{problem}. This is what was known last.</p>}
      <div class="grid">
        <div class="columns">
          <Card title="File systems">
            <div class="bars one">
              {fileSystems.map(({ what, path, usedBytes, capacityBytes, inodesUsed, inodes }) => (
                <div key={path}>
                  <Bar label={what} used={usedBytes} requested={undefined} whole={capacityBytes} text={inBytes} />
                  <p class="muted fine">
                    {path}
                    {inodes > 0 && `, ${percent((inodesUsed / inodes) * 100)} of its inodes used`}
                  </p>
                </div>
              ))}
            </div>
          </Card>
          <Card title="NUMA nodes">
            <Facts
              rows={numa.map(({ id, cpus, memoryBytes, hugePages }) => [
                `Node ${id}`,
                <>
                  CPUs {cpus}, {inBytes(memoryBytes)}
                  {hugePages
                    .filter((each) => each.bytes > 0)
                    .map(({ sizeBytes, bytes: amount }) => (
                      <span key={sizeBytes} class="muted">
                        {" "}
                        {inBytes(amount)} in pages of {inBytes(sizeBytes)}
                      </span>
                    ))}
                </>,
              ])}
            />
          </Card>
        </div>
        <Card title="Network interfaces" wide>
          <Table
            label="Network interfaces"
            rows={interfaces}
            columns={interfaceColumns}
            keyOf={({ name }) => name}
            empty="There are none."
          />
        </Card>
        {chosen !== undefined && <Processes cgroup={chosen} onClose={() => setChosen(undefined)} />}
        <Card
          title="Cgroups"
          note={
            leftOut === 0
              ? `${cgroups.length}, the system and pods`
              : `the first ${cgroups.length}; ${leftOut} are left out`
          }
          wide
        >
          <Table
            label="Cgroups"
            rows={cgroups}
            columns={columnsFor(setChosen)}
            keyOf={({ path }) => path}
            empty="There are no cgroups to be seen."
          />
        </Card>
      </div>
    </>
  );
}

const interfaceColumns: readonly Column<Interface>[] = [
  { name: "Interface", cell: ({ name }) => name, class: "name" },
  { name: "Receives", cell: ({ receiveRate }) => rate(receiveRate), align: "right" },
  { name: "Sends", cell: ({ sendRate }) => rate(sendRate), align: "right" },
  { name: "Received", cell: ({ receivedBytes }) => inBytes(receivedBytes), align: "right" },
  { name: "Sent", cell: ({ sentBytes }) => inBytes(sentBytes), align: "right" },
  { name: "Errors", cell: ({ errors }) => count(errors), align: "right" },
  { name: "Dropped", cell: ({ dropped }) => count(dropped), align: "right" },
];

function rate(value: number | null): string {
  return value === null ? "–" : `${inBytes(value)}/s`;
}

function columnsFor(choose: (path: string) => void): readonly Column<CgroupView>[] {
  return [
    {
      name: "Cgroup",
      cell: ({ path, depth, pod, container }) => (
        <span class={`tree d${depth}`} title={path}>
          {pod === undefined ? (container ?? shortName(path)) : <PodLink uid={pod.uid}>{pod.name}</PodLink>}
        </span>
      ),
      class: "name",
    },
    { name: "CPU", cell: ({ cpu }) => cores(cpu), align: "right" },
    {
      name: "Memory",
      cell: ({ memory, memoryLimit }) => (
        <>
          {memory !== null && memoryLimit !== null && (
            <Meter value={memory} limit={memoryLimit} text={`${inBytes(memory)} of ${inBytes(memoryLimit)}`} />
          )}{" "}
          {inBytes(memory)}
        </>
      ),
      align: "right",
    },
    { name: "Reads", cell: ({ readRate }) => rate(readRate), align: "right" },
    { name: "Writes", cell: ({ writeRate }) => rate(writeRate), align: "right" },
    { name: "Pressure", cell: (cgroup) => <PressureOf cgroup={cgroup} />, align: "right" },
    {
      name: "Processes",
      cell: ({ path, pids }) => (
        <button type="button" class="plain small" onClick={() => choose(path)}>
          {pids === null ? "show" : count(pids)}
          <span class="unseen"> processes of {path}</span>
        </button>
      ),
      align: "right",
    },
  ];
}

/** Nobody reads 64 digits. */
function shortName(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return name === "" ? "/" : name.replace(/([0-9a-f]{12})[0-9a-f]{52}/, "$1…");
}

function PressureOf({ cgroup }: { readonly cgroup: CgroupView }) {
  const { cpuPressure, memoryPressure, ioPressure } = cgroup;
  if (cpuPressure === null && memoryPressure === null && ioPressure === null) return <span class="muted">–</span>;
  return (
    <span title={`CPU ${percent(cpuPressure)}, memory ${percent(memoryPressure)}, I/O ${percent(ioPressure)}`}>
      {[cpuPressure, memoryPressure, ioPressure].map(percent).join(" · ")}
    </span>
  );
}

function Processes({ cgroup, onClose }: { readonly cgroup: string; readonly onClose: () => void }) {
  const path = `machine?processes=${encodeURIComponent(cgroup)}`;
  const { answer, problem } = useAsked<readonly ProcessView[]>(path, 2_000);
  return (
    <Card title={`Processes of ${cgroup}`} wide>
      <Table
        label="Processes"
        rows={answer ?? []}
        columns={processColumns}
        keyOf={({ pid }) => String(pid)}
        sortedBy="PID"
        empty={problem ?? (answer === undefined ? "Asking the agent…" : "There are none in the cgroup itself.")}
      />
      <button type="button" class="plain" onClick={onClose}>
        Close
      </button>
    </Card>
  );
}

const processColumns: readonly Column<ProcessView>[] = [
  { name: "PID", cell: ({ pid }) => pid, by: ({ pid }) => pid },
  { name: "Name", cell: ({ name }) => name, by: ({ name }) => name, class: "name" },
  {
    name: "CPU time",
    cell: ({ cpuSeconds }) => `${cpuSeconds.toFixed(1)} s`,
    by: ({ cpuSeconds }) => cpuSeconds,
    align: "right",
  },
  {
    name: "Memory",
    cell: ({ residentBytes }) => inBytes(residentBytes),
    by: ({ residentBytes }) => residentBytes,
    align: "right",
  },
  { name: "Open files", cell: ({ openFiles }) => openFiles, by: ({ openFiles }) => openFiles, align: "right" },
  { name: "Age", cell: ({ startedAt }) => <Ago at={startedAt} />, by: ({ startedAt }) => -startedAt, align: "right" },
];
