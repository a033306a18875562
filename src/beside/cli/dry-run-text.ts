/** The answers of the agent's dry runs, as far as they are shown. */
export interface EvictionAnswer {
  readonly signals: readonly {
    readonly signal: string;
    readonly available: string;
    readonly isPretended: boolean;
    readonly thresholds: readonly {
      readonly kind: string;
      readonly wanted: string;
      readonly graceSeconds: number;
      readonly metForSeconds?: number;
    }[];
  }[];
  readonly reclaims: readonly string[];
  readonly victims: readonly {
    readonly pod: string;
    readonly signal: string;
    readonly used?: string;
    readonly requested: string;
    readonly isOverRequest: boolean;
    readonly priority: number;
    readonly frees?: string;
    readonly graceSeconds: number;
    readonly inSeconds: number;
  }[];
  readonly spared: readonly { readonly pod: string; readonly why: string }[];
  readonly outcome: string;
}

/** Parts that nobody asked for are not there. */
export interface CollectionAnswer {
  readonly images?: {
    readonly goes: readonly ImageShown[];
    readonly stays: readonly (ImageShown & { readonly because: string })[];
    readonly freedBytes: number;
    readonly wantedBytes: number;
  };
  readonly containers?: readonly {
    readonly kind: string;
    readonly id: string;
    readonly pod: string;
    readonly name: string;
    readonly createdAt: number;
  }[];
  readonly logs?: readonly {
    readonly directory: string;
    readonly sizeBytes: number;
    readonly lastWrittenAt: number;
  }[];
  readonly pods?: readonly { readonly uid: string }[];
}

interface ImageShown {
  readonly id: string;
  readonly names: readonly string[];
  readonly sizeBytes: number;
  readonly lastUsed: number;
  readonly firstSeen: number;
}

export interface DrainAnswer {
  readonly goes: readonly {
    readonly pod: string;
    readonly graceSeconds: number;
    readonly hooks: readonly string[];
    readonly claims: readonly string[];
    readonly loses: readonly string[];
    readonly comesBack: string;
    readonly isOverTime: boolean;
  }[];
  readonly stays: readonly { readonly pod: string; readonly why: string }[];
  readonly expectedSeconds: number;
  readonly unknown: readonly string[];
}

const notice = "This is the state of this moment; what happens may differ by then.\n";

export function evictionText({ signals, reclaims, victims, spared, outcome }: EvictionAnswer): string {
  const lines = ["Signals:"];
  for (const { signal, available, isPretended, thresholds } of signals) {
    lines.push(`  ${signal}: ${available} available${isPretended ? " (pretended)" : ""}`);
    for (const { kind, wanted, graceSeconds, metForSeconds } of thresholds) {
      const grace = graceSeconds > 0 ? `, after ${graceSeconds} s` : "";
      const state = metForSeconds === undefined ? "there is enough" : `too little for ${metForSeconds} s`;
      lines.push(`    ${kind}: wants ${wanted}${grace}; ${state}`);
    }
  }
  if (reclaims.length > 0) lines.push(`First, what nobody uses would be removed: ${reclaims.join(", ")}.`);
  for (const [index, victim] of victims.entries()) lines.push(...victimLines(index + 1, victim));
  if (spared.length > 0) lines.push("Never touched:", ...spared.map(({ pod, why }) => `  ${pod}: ${why}`));
  lines.push(`Then: ${outcome}.`);
  return `${lines.join("\n")}\n${notice}`;
}

function victimLines(position: number, victim: EvictionAnswer["victims"][number]): readonly string[] {
  const { pod, signal, used = "unknown", requested, isOverRequest, priority, frees = "unknown" } = victim;
  const grace = victim.graceSeconds === 0 ? "killed at once" : `${victim.graceSeconds} s to end`;
  return [
    `${position}. ${pod} in ${victim.inSeconds} s, for ${signal}: ${grace}, frees ${frees}`,
    `   uses ${used}, asked for ${requested} (${isOverRequest ? "over" : "within"}), priority ${priority}`,
  ];
}

export function collectionText({ images, containers, logs, pods }: CollectionAnswer, now: number): string {
  const lines = [
    ...(images === undefined ? [] : imageLines(images, now)),
    ...listed(
      "Containers and sandboxes to go",
      containers,
      ({ kind, pod, name, id, createdAt }) =>
        `${kind} ${name} of ${pod} (${id.slice(0, 12)}), ${age(createdAt, now)} old`,
    ),
    ...listed(
      "Logs of pods that are gone, to go",
      logs,
      ({ directory, sizeBytes, lastWrittenAt }) =>
        `${directory}: ${megabytes(sizeBytes)}, last changed ${age(lastWrittenAt, now)} ago`,
    ),
    ...listed("Directories of pods that are gone, to go", pods, ({ uid }) => uid),
  ];
  return `${lines.join("\n")}\n${notice}`;
}

function listed<Item>(title: string, items: readonly Item[] | undefined, text: (item: Item) => string) {
  return items === undefined ? [] : [`${title}: ${items.length}`, ...items.map((item) => `  ${text(item)}`)];
}

function imageLines(images: NonNullable<CollectionAnswer["images"]>, now: number): readonly string[] {
  const describe = ({ names, id, sizeBytes, lastUsed, firstSeen }: ImageShown): string => {
    const used = lastUsed === 0 ? "not used since it is known" : `last used ${age(lastUsed, now)} ago`;
    return `  ${names[0] ?? id}: ${megabytes(sizeBytes)}, known for ${age(firstSeen, now)}, ${used}`;
  };
  return [
    `Images to go: ${images.goes.length}, ${megabytes(images.freedBytes)} of ${megabytes(images.wantedBytes)} wanted`,
    ...images.goes.map(describe),
    `Images to stay: ${images.stays.length}`,
    ...images.stays.map((image) => `${describe(image)}; ${image.because}`),
  ];
}

export function drainText({ goes, stays, expectedSeconds, unknown }: DrainAnswer): string {
  const lines = [`Pods to go: ${goes.length}, within ${expectedSeconds} s`];
  for (const { pod, graceSeconds, hooks, claims, loses, comesBack, isOverTime } of goes) {
    lines.push(`  ${pod}: up to ${graceSeconds} s${isOverTime ? ", longer than the time given" : ""}`);
    lines.push(`    comes back ${comesBack}`);
    if (hooks.length > 0) lines.push(`    hooks of ${hooks.join(", ")} run first`);
    if (claims.length > 0) lines.push(`    to be detached: ${claims.join(", ")}`);
    if (loses.length > 0) lines.push(`    is lost: ${loses.join(", ")}`);
  }
  lines.push(`Pods to stay: ${stays.length}`, ...stays.map(({ pod, why }) => `  ${pod}: ${why}`));
  lines.push("Not known here:", ...unknown.map((text) => `  ${text}`));
  return `${lines.join("\n")}\n${notice}`;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

function age(since: number, now: number): string {
  const minutes = Math.max(0, Math.round((now - since) / 60_000));
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}
