import { useEffect, useRef, useState } from "preact/hooks";
import type { PodDetails } from "../../wire.ts";
import { colouredPieces } from "../ansi.ts";
import { ask } from "../ask.ts";
import { downloadLog, followLog, type LogQuestion } from "../log-client.ts";
import { inOrder, type LogLine } from "../log-order.ts";
import { Mark, Nothing } from "../parts/marks.tsx";
import { RefusedError } from "../refused.ts";
import { useIsSeen } from "../seen.ts";
import { store, useStore } from "../store.ts";
import { madeVisible } from "../visible.ts";

/** More would make the page slow; the whole log can be downloaded. */
const mostLines = 2_000;

/** The logs of all pods to choose from, or of one. */
export function LogsPage({
  uid,
  container,
}: {
  readonly uid: string | undefined;
  readonly container: string | undefined;
}) {
  const { pods } = useStore();
  const rows = [...pods.values()].sort((a, b) => a.name.localeCompare(b.name));
  return (
    <>
      <div class="toolbar">
        <label>
          Pod{" "}
          <select
            value={uid ?? ""}
            onChange={({ currentTarget }) => {
              location.hash = `#/logs/${currentTarget.value}`;
            }}
          >
            <option value="">Choose a pod…</option>
            {rows.map(({ uid: each, name, namespace }) => (
              <option key={each} value={each}>
                {namespace}/{name}
              </option>
            ))}
          </select>
        </label>
      </div>
      {uid === undefined || uid === "" ? (
        <Nothing>Logs are read from the node's files, across rotation, also of containers that ended.</Nothing>
      ) : (
        <PodLog key={uid} uid={uid} container={container} />
      )}
    </>
  );
}

function PodLog({ uid, container }: { readonly uid: string; readonly container: string | undefined }) {
  const names = useContainers(uid);
  const [previous, setPrevious] = useState(false);
  const [isPaused, setPaused] = useState(false);
  const [search, setSearch] = useState("");
  const [wraps, setWraps] = useState(true);
  const [hasTimes, setTimes] = useState(false);
  const [hasColours, setColours] = useState(false);
  const chosen = container === undefined || container === "" ? [] : [container];
  const { lines, problem, hasEnded } = useLog(uid, container ?? "", previous, isPaused);
  const shownNames = chosen.length === 0 ? names : chosen;
  const found = search === "" ? lines : lines.filter(({ text }) => text.toLowerCase().includes(search.toLowerCase()));
  const [notDownloaded, setNotDownloaded] = useState<string | undefined>(undefined);
  const download = (): void => {
    const containers = shownNames.slice(0, 1);
    const question: LogQuestion = { uid, containers, previous, follow: false };
    const fileName = `${store.pods.get(uid)?.name ?? "pod"}-${containers[0] ?? ""}.log`;
    setNotDownloaded(undefined);
    downloadLog(question, fileName).catch((error: Error) => setNotDownloaded(error.message));
  };
  return (
    <>
      <div class="toolbar">
        <label>
          Container{" "}
          <select
            value={container ?? ""}
            onChange={({ currentTarget }) => {
              location.hash = `#/logs/${encodeURIComponent(uid)}/${encodeURIComponent(currentTarget.value)}`;
            }}
          >
            <option value="">all</option>
            {names.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <fieldset class="pills">
          <legend class="unseen">How the log is shown</legend>
          <Toggle name="Pause" isOn={isPaused} onChange={setPaused} />
          <Toggle name="Previous" isOn={previous} onChange={setPrevious} />
          <Toggle name="Wrap" isOn={wraps} onChange={setWraps} />
          <Toggle name="Times" isOn={hasTimes} onChange={setTimes} />
          <Toggle name="Colours" isOn={hasColours} onChange={setColours} />
        </fieldset>
        <input
          type="search"
          aria-label="Search in the log"
          placeholder="Search…"
          value={search}
          onInput={({ currentTarget }) => setSearch(currentTarget.value)}
        />
        {(chosen.length === 1 || names.length === 1) && (
          <button type="button" class="plain" onClick={download}>
            Download
          </button>
        )}
        <span class="muted push">
          {(problem ?? notDownloaded) !== undefined ? (
            <Mark tone="bad">{problem ?? notDownloaded}</Mark>
          ) : (
            <>
              {search === "" ? `${lines.length} lines` : `${found.length} of ${lines.length} lines`}
              {isPaused ? ", paused" : hasEnded ? ", it has ended" : ", followed"}
            </>
          )}
        </span>
      </div>
      <LogText lines={found} {...{ names: shownNames, search, wraps, hasTimes, hasColours, isPaused }} />
    </>
  );
}

function Toggle(props: { readonly name: string; readonly isOn: boolean; readonly onChange: (isOn: boolean) => void }) {
  const { name, isOn, onChange } = props;
  return (
    <button type="button" aria-pressed={isOn} onClick={() => onChange(!isOn)}>
      {name}
    </button>
  );
}

/** Names of the pod's containers; known to the agent alone. */
function useContainers(uid: string): readonly string[] {
  const [names, setNames] = useState<readonly string[]>([]);
  const told = store.podTold.get(uid) ?? 0;
  useEffect(() => {
    const left = new AbortController();
    ask<PodDetails>(`pods/${encodeURIComponent(uid)}`, left.signal).then(
      ({ containers }) => setNames(containers.map(({ name }) => name)),
      () => {},
    );
    return () => left.abort();
  }, [uid, told === 0]);
  return names;
}

const againMs = 2_000;

/** The log as it grows. One that breaks off, because the agent was restarted, and that of the next container go on. */
function useLog(uid: string, container: string, previous: boolean, isPaused: boolean) {
  const [lines, setLines] = useState<readonly LogLine[]>([]);
  const [problem, setProblem] = useState<string | undefined>(undefined);
  const [hasEnded, setEnded] = useState(false);
  const restarts = store.pods.get(uid)?.restarts ?? 0;
  // A container that runs anew has a log of its own.
  const run = previous ? 0 : restarts;
  const isSeen = useIsSeen();
  const asked = `${uid} ${container} ${previous}`;
  const shown = useRef("");
  useEffect(() => {
    // What is there stays to be read.
    if (isPaused || !isSeen) return;
    const left = new AbortController();
    let all: readonly LogLine[] = [];
    let isDrawing = false;
    let timer: ReturnType<typeof setTimeout>;
    const draw = (): void => {
      isDrawing = false;
      if (!left.signal.aborted) setLines(all);
    };
    const take = (more: readonly LogLine[]): void => {
      setProblem(undefined);
      all = inOrder([...all, ...more]).slice(-mostLines);
      // A log that pours is drawn a few times a second.
      if (!isDrawing) setTimeout(draw, 60);
      isDrawing = true;
    };
    setProblem(undefined);
    setEnded(false);
    if (shown.current !== asked) setLines([]);
    shown.current = asked;
    const read = (): void => {
      all = [];
      const question = { uid, containers: container === "" ? [] : [container], previous, follow: !previous };
      followLog(question, take, left.signal).then(
        () => {
          draw();
          setEnded(true);
        },
        (error: Error) => {
          if (left.signal.aborted) return;
          // What was read stays until there is something newer. A pod that is not there may be one that the agent, just
          // started, has not heard of yet.
          setProblem(error instanceof RefusedError ? error.message : "the agent is away; trying again");
          timer = setTimeout(read, againMs);
        },
      );
    };
    read();
    return () => {
      left.abort();
      clearTimeout(timer);
    };
  }, [uid, container, previous, isPaused, run, isSeen, store.regained]);
  return { lines, problem, hasEnded };
}

function LogText(props: {
  readonly lines: readonly LogLine[];
  readonly names: readonly string[];
  readonly search: string;
  readonly wraps: boolean;
  readonly hasTimes: boolean;
  readonly hasColours: boolean;
  readonly isPaused: boolean;
}) {
  const { lines, names, search, wraps, hasTimes, hasColours, isPaused } = props;
  const place = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    const element = place.current;
    if (element !== null && isAtEnd.current && !isPaused) element.scrollTop = element.scrollHeight;
  }, [lines, isPaused]);
  return (
    <div
      ref={place}
      class={wraps ? "log wraps" : "log"}
      role="log"
      aria-label="Log"
      aria-live="off"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard.
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < 40;
      }}
    >
      {lines.length === 0 && <p class="nothing">Nothing was written yet.</p>}
      {lines.map(({ number, container, time, text }) => (
        <div key={number} class={container === undefined ? "line own" : "line"}>
          {names.length > 1 && container !== undefined && (
            <span class={`who w${container % 6}`}>{names[container] ?? container}</span>
          )}
          {hasTimes && <span class="time">{time.slice(0, 23)}</span>}
          <span class="text">
            {hasColours ? <Colours text={text} /> : <Found text={madeVisible(text)} search={search} />}
          </span>
        </div>
      ))}
    </div>
  );
}

function Colours({ text }: { readonly text: string }) {
  return (
    <>
      {colouredPieces(text).map(({ text: piece, colour, isBold }, index) => (
        <span key={`${index} ${piece}`} class={`${colour === undefined ? "" : `a${colour}`} ${isBold ? "bold" : ""}`}>
          {madeVisible(piece)}
        </span>
      ))}
    </>
  );
}

/** The text with what was searched for marked in it. */
function Found({ text, search }: { readonly text: string; readonly search: string }) {
  if (search === "") return <>{text}</>;
  const pieces: (string | { readonly hit: string })[] = [];
  const [lower, wanted] = [text.toLowerCase(), search.toLowerCase()];
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    pieces.push(text.slice(from, at), { hit: text.slice(at, at + wanted.length) });
    from = at + wanted.length;
  }
  pieces.push(text.slice(from));
  return (
    <>{pieces.map((piece, index) => (typeof piece === "string" ? piece : <mark key={`${index}`}>{piece.hit}</mark>))}</>
  );
}
