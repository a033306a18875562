import { useEffect, useRef, useState } from "preact/hooks";
import type { ContainerDetails, EventView, ExitView, PodDetails, ProbeView, VolumeView } from "../../wire.ts";
import { ask, askText } from "../ask.ts";
import { absolute, cores, inBytes, longSpan, percent } from "../format.ts";
import { Chart } from "../parts/chart.tsx";
import { Ago, Card, Facts, Mark, Nothing, Until } from "../parts/marks.tsx";
import { PullBar } from "../parts/pull-bar.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Waterfall } from "../parts/waterfall.tsx";
import { store, useNow, useStore } from "../store.ts";
import { madeVisible } from "../visible.ts";
import { conditionColumns } from "./node.tsx";

const sources = {
  api: "from the API server",
  manifest: "from a manifest",
  mirror: "from a manifest, as the API server knows it",
} as const;

export function PodPage({ uid }: { readonly uid: string }) {
  useStore();
  const { view, problem } = usePod(uid);
  if (view === undefined) return <Nothing>{problem ?? "Asking the agent…"}</Nothing>;
  const { row } = view;
  return (
    <>
      {problem !== undefined && <p class="notice">{problem} This is what was known last.</p>}
      <p class="sub">
        <Mark tone={row.tone}>{row.status}</Mark>
        <span>namespace {row.namespace}</span>
        <span>{sources[row.from]}</span>
        <span>{view.qos}</span>
        {row.ip !== "" && <span>{row.ip}</span>}
        <span>
          <Ago at={row.createdAt} words=" old" />
        </span>
      </p>
      <div class="grid">
        <Why view={view} />
        <Card title="Where the time went" note="from first sight on, step by step" wide>
          {view.steps.length === 0 ? (
            <Nothing>The agent has no record of this pod.</Nothing>
          ) : (
            <Waterfall steps={view.steps} now={store.now()} />
          )}
          {view.dropped > 0 && <p class="muted">{view.dropped} steps in between are no longer kept.</p>}
        </Card>
        {view.containers.map((container) => (
          <Container key={container.name} uid={uid} container={container} />
        ))}
        <Card title="Volumes" wide>
          <Table
            label="Volumes"
            rows={view.volumes}
            columns={volumeColumns}
            keyOf={({ name }) => name}
            empty="This pod has no volumes."
          />
        </Card>
        <Card title="Conditions" wide>
          <Table
            label="Conditions"
            rows={view.conditions}
            columns={conditionColumns}
            keyOf={({ type }) => type}
            empty="This pod has no conditions yet."
          />
        </Card>
        <Card title="Events" note="since the agent was started" wide>
          <Table
            label="Events"
            rows={view.events}
            columns={eventColumns}
            keyOf={({ reason, message }) => `${reason} ${message}`}
            empty="Nothing was said about this pod."
          />
        </Card>
        <Yaml uid={uid} />
      </div>
    </>
  );
}

/** Asks for the pod now, when the agent tells of it, and every two seconds for its charts. */
function usePod(uid: string): { readonly view: PodDetails | undefined; readonly problem: string | undefined } {
  const [view, setView] = useState<PodDetails | undefined>(undefined);
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const told = store.podTold.get(uid) ?? 0;
  const sampledAt = store.sample?.node[0] ?? 0;
  const asking = useRef<{ isDue: boolean; readonly left: AbortController } | undefined>(undefined);
  // These say that there is something new to ask for: when the answer that is under way is here, however fast they come.
  useEffect(() => {
    if (document.visibilityState !== "visible") return;
    if (asking.current !== undefined) {
      asking.current.isDue = true;
      return;
    }
    const own = { isDue: true, left: new AbortController() };
    asking.current = own;
    const askWhileDue = async (): Promise<void> => {
      while (own.isDue && !own.left.signal.aborted) {
        own.isDue = false;
        try {
          setView(await ask<PodDetails>(`pods/${encodeURIComponent(uid)}`, own.left.signal));
          setProblem(undefined);
        } catch (error) {
          if (!own.left.signal.aborted) setProblem(`${error instanceof Error ? error.message : String(error)}.`);
        }
      }
      asking.current = undefined;
    };
    void askWhileDue();
  }, [uid, told, sampledAt]);
  useEffect(() => () => asking.current?.left.abort(), []);
  return { view: view?.row.uid === uid ? view : undefined, problem };
}

function Why({ view }: { readonly view: PodDetails }) {
  const { row, advice, ending } = view;
  const { wait, doing, endsBy } = row;
  return (
    <section class="card wide why" aria-label="Why">
      <header>
        <h2>Why</h2>
      </header>
      {wait !== undefined && (
        <>
          <p class="big">
            Waiting for <b>{wait.reason}</b> for <Ago at={wait.since} />
            {wait.nextTryAt !== undefined && (
              <>
                , next try <Until at={wait.nextTryAt} />
              </>
            )}
          </p>
          <p class="said">{wait.message}</p>
          {wait.reason === "CrashLoopBackOff" && row.lastExit !== undefined && (
            <p>
              Last, <b>{row.lastExit.container}</b> ended with {row.lastExit.text}
              {row.lastExit.at !== undefined && (
                <>
                  , <Ago at={row.lastExit.at} words=" ago" />
                </>
              )}
              .{" "}
              <a href={`#/logs/${encodeURIComponent(row.uid)}/${encodeURIComponent(row.lastExit.container)}`}>
                What it wrote
              </a>
            </p>
          )}
        </>
      )}
      {wait === undefined && doing !== undefined && (
        <p class="big">
          At work on <b>{doing.what}</b> for <Ago at={doing.since} />
        </p>
      )}
      {wait === undefined && doing === undefined && (
        <p class="big">
          {row.tone === "good" ? "It runs, and waits for nothing." : `${row.status}. It waits for nothing.`}
        </p>
      )}
      {view.pulls.map((pull) => (
        <PullBar key={pull.image} pull={pull} />
      ))}
      {endsBy !== undefined && (
        <p>
          It is asked to end: {ending ?? "its containers have time"}, at the latest <Until at={endsBy} />.
        </p>
      )}
      {advice !== undefined && (
        <p class="advice">
          <b>What would help:</b> {advice}
        </p>
      )}
    </section>
  );
}

function Container({ uid, container }: { readonly uid: string; readonly container: ContainerDetails }) {
  const { name, kind, image, state, tone, message, since, restarts, lastExit, probes, usage } = container;
  const isLive = usage.length > 1;
  const times = usage.map(([at]) => at ?? null);
  const throttled = usage.map((row) => (row[3] === null || row[3] === undefined ? null : row[3] * 100));
  return (
    <Card title={name} note={kind === "regular" ? "container" : `${kind} container`} wide>
      <div class="container">
        <div>
          <p class="sub">
            <Mark tone={tone}>{state}</Mark>
            {since !== undefined && (
              <span>
                for <Ago at={since} />
              </span>
            )}
            <a href={`#/logs/${encodeURIComponent(uid)}/${encodeURIComponent(name)}`}>Log</a>
          </p>
          {message !== "" && <p class="said">{message}</p>}
          <Facts
            rows={[
              ["Image", image],
              ["Restarts", restarts === 0 ? "none" : String(restarts)],
              ...(lastExit === undefined ? [] : ([["Last end", <Exit key="exit" exit={lastExit} />]] as const)),
              ["Requests", amountsText(container.requests)],
              ["Limits", amountsText(container.limits)],
            ]}
          />
        </div>
        {isLive && (
          <div class="charts two">
            <Chart
              title="CPU"
              smallest={0.001}
              times={times}
              text={cores}
              limit={container.cpuLimit}
              lines={[{ label: "used", colour: 1, fill: true, values: usage.map((row) => row[1] ?? null) }]}
              height={110}
            />
            <Chart
              title="Memory"
              times={times}
              text={inBytes}
              isBytes
              limit={container.memoryLimit}
              lines={[{ label: "used", colour: 2, fill: true, values: usage.map((row) => row[2] ?? null) }]}
              height={110}
            />
            {container.cpuLimit !== undefined && (
              <Chart
                title="Throttled"
                times={times}
                text={percent}
                lines={[{ label: "of its periods", colour: 3, values: throttled }]}
                height={110}
              />
            )}
          </div>
        )}
      </div>
      {probes.map((probe) => (
        <Probe key={probe.kind} probe={probe} />
      ))}
    </Card>
  );
}

function amountsText(amounts: Readonly<Record<string, string>>): string {
  const texts = Object.entries(amounts).map(([name, amount]) => `${name} ${amount}`);
  return texts.length === 0 ? "none" : texts.join(", ");
}

function Exit({ exit }: { readonly exit: ExitView }) {
  const { code, signal, reason, message, outOfMemory, at } = exit;
  return (
    <>
      {outOfMemory && <Mark tone="bad">out of memory </Mark>}
      exit code {code}
      {signal !== undefined && ` (${signal})`}
      {reason !== "" && reason !== "Error" && !outOfMemory && `, ${reason}`}
      {at !== undefined && (
        <span class="muted">
          , <Ago at={at} words=" ago" />
        </span>
      )}
      {message !== "" && <span class="said">{message}</span>}
    </>
  );
}

const tickTones = { success: "good", warning: "busy", failure: "bad", error: "busy" } as const;

function Probe({ probe }: { readonly probe: ProbeView }) {
  const { kind, how, result, periodSeconds, nextAt, outcomes } = probe;
  const failed = outcomes.filter(({ outcome }) => outcome === "failure").length;
  const text = `${outcomes.length} last attempts, ${failed} failed`;
  return (
    <div class="probe">
      <div>
        <Mark tone={result === "success" ? "good" : result === "failure" ? "bad" : "busy"}>{kind}</Mark>
        <span class="muted clip">
          {" "}
          {how}, every {longSpan(periodSeconds * 1000)}
        </span>
        {nextAt !== undefined && (
          <span class="muted push">
            next <Until at={nextAt} />
          </span>
        )}
      </div>
      <div class="ticks" role="img" aria-label={text}>
        {outcomes.map(({ at, outcome }, index) => (
          <span key={`${at} ${index}`} class={`tick ${tickTones[outcome]}`} title={`${outcome} ${absolute(at)}`} />
        ))}
      </div>
    </div>
  );
}

const volumeColumns: readonly Column<VolumeView>[] = [
  { name: "Volume", cell: ({ name }) => name, class: "name" },
  { name: "Kind", cell: ({ kind }) => kind },
  { name: "Source", cell: ({ source }) => source || "–", class: "clip" },
  { name: "State", cell: ({ state, tone }) => <Mark tone={tone}>{state}</Mark> },
  { name: "Version on disk", cell: ({ version }) => version ?? "–" },
  { name: "Used", cell: ({ usedBytes }) => inBytes(usedBytes), align: "right" },
  { name: "Of", cell: ({ limitBytes, capacityBytes }) => inBytes(limitBytes ?? capacityBytes), align: "right" },
  { name: "Detail", cell: ({ detail }) => detail, class: "wrap" },
];

const eventColumns: readonly Column<EventView>[] = [
  { name: "Event", cell: ({ type, reason }) => <Mark tone={type === "Warning" ? "bad" : "good"}>{reason}</Mark> },
  { name: "Message", cell: ({ message }) => message, class: "wrap" },
  { name: "Times", cell: ({ times }) => times, align: "right" },
  { name: "Last", cell: ({ at }) => <Ago at={at} words=" ago" />, align: "right" },
];

/** Asked for only when somebody wants to see it. */
function Yaml({ uid }: { readonly uid: string }) {
  const [text, setText] = useState<string | undefined>(undefined);
  const [isOpen, setOpen] = useState(false);
  useNow();
  useEffect(() => {
    if (!isOpen) return;
    askText(`pods/${encodeURIComponent(uid)}/yaml`).then(
      (yaml) => setText(madeVisible(yaml)),
      (error: Error) => setText(error.message),
    );
  }, [uid, isOpen]);
  return (
    <Card title="YAML" note="what is secret is left out" wide>
      <button type="button" class="plain" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? "Hide" : "Show"}
      </button>
      {isOpen && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard.
        <pre class="yaml" tabIndex={0}>
          {text ?? "Asking the agent…"}
        </pre>
      )}
    </Card>
  );
}
