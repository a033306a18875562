import type { UnixChannel } from "../../ground/grpc/index.ts";
import { criNamespace } from "./containerd-events.ts";
import { ContentDefinition } from "./gen/containerd/content.ts";

/** A blob on its way: how much of it is there. */
export interface Ingest {
  /** Its digest, "sha256:…". */
  readonly digest: string;
  readonly bytes: number;
  /** 0: not known yet. */
  readonly totalBytes: number;
}

/** What an image consists of, as its manifest tells. */
export interface ManifestLayers {
  /** Of the manifest itself. */
  readonly digest: string;
  readonly layers: readonly { readonly digest: string; readonly bytes: number }[];
}

/** What containerd keeps of images, and what it is fetching. Every call has its bound in time and in bytes. */
export interface ImageContent {
  ingests(signal: AbortSignal): Promise<readonly Ingest[]>;
  /** The manifests that came from this repository of this registry. */
  manifests(registry: string, repository: string, signal: AbortSignal): Promise<readonly ManifestLayers[]>;
  /** Which of these blobs are there as a whole. */
  present(digests: readonly string[], signal: AbortSignal): Promise<ReadonlySet<string>>;
}

// Whoever looks at progress looks again in a second.
const answerWithinMs = 5_000;
const mostManifests = 50;
const mostManifestBytes = 4 * 1024 * 1024;
const mostLayers = 1000;
const mostIngests = 1000;
const source = "containerd.io/distribution.source.";
const configLabel = "containerd.io/gc.ref.content.config";

/** Asks containerd's content service; other runtimes answer Unimplemented. */
export function imageContent(channel: UnixChannel, now: () => number): ImageContent {
  const { fullName, methods } = ContentDefinition;
  const wire = (operation: string, signal: AbortSignal) => ({
    operation,
    deadline: now() + answerWithinMs,
    signal,
    headers: { "containerd-namespace": criNamespace },
  });
  const list = async (filters: readonly string[], most: number, signal: AbortSignal) => {
    const found: {
      readonly digest: string;
      readonly size: bigint;
      readonly labels: Readonly<Record<string, string>>;
    }[] = [];
    const answers = channel.stream(fullName, methods.list, { filters: [...filters] }, wire("listContent", signal));
    for await (const { info } of answers) {
      found.push(...info);
      if (found.length >= most) break;
    }
    return found;
  };
  const read = async (digest: string, signal: AbortSignal): Promise<Buffer | undefined> => {
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    const request = { digest, offset: 0n, size: 0n };
    for await (const { data } of channel.stream(fullName, methods.read, request, wire("readContent", signal))) {
      bytes += data.length;
      if (bytes > mostManifestBytes) return undefined;
      pieces.push(data);
    }
    return Buffer.concat(pieces);
  };
  return {
    async ingests(signal) {
      const call = wire("listContentStatuses", signal);
      const { statuses } = await channel.unary(fullName, methods.listStatuses, { filters: [] }, call);
      return statuses.slice(0, mostIngests).flatMap(({ ref, offset, total }) => {
        // Such as "layer-sha256:…", and in the shared name space with the name of ours before it.
        const digest = /sha256:[0-9a-f]{64}$/.exec(ref)?.[0];
        return digest === undefined ? [] : [{ digest, bytes: Number(offset), totalBytes: Number(total) }];
      });
    },
    async manifests(registry, repository, signal) {
      // The label has the host without its port.
      const host = registry.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
      const filter = `labels.${quoted(source + host)}~=${quoted(`(^|,)${escaped(repository)}(,|$)`)}`;
      const found: ManifestLayers[] = [];
      for (const { digest, size, labels } of await list([filter], mostLayers, signal)) {
        if (labels[configLabel] === undefined || size > mostManifestBytes) continue;
        const layers = layersOf(await read(digest, signal));
        if (layers !== undefined) found.push({ digest, layers });
        if (found.length >= mostManifests) break;
      }
      return found;
    },
    async present(digests, signal) {
      if (digests.length === 0) return new Set();
      const found = await list(
        digests.map((digest) => `digest==${digest}`),
        digests.length,
        signal,
      );
      return new Set(found.map(({ digest }) => digest));
    },
  };
}

/** The layers that a manifest names; undefined: it is none that we understand. */
export function layersOf(manifest: Buffer | undefined): ManifestLayers["layers"] | undefined {
  const { layers } = parsed(manifest);
  if (!Array.isArray(layers) || layers.length > mostLayers) return undefined;
  const known = layers.flatMap((layer: unknown) => {
    const { digest, size } = Object(layer) as { digest?: unknown; size?: unknown };
    const isWhole = typeof digest === "string" && typeof size === "number" && Number.isSafeInteger(size) && size >= 0;
    return isWhole && /^sha256:[0-9a-f]{64}$/.test(digest) ? [{ digest, bytes: size }] : [];
  });
  return known.length === layers.length ? known : undefined;
}

function parsed(bytes: Buffer | undefined): { readonly layers?: unknown } {
  try {
    return bytes === undefined ? {} : (Object(JSON.parse(bytes.toString())) as { layers?: unknown });
  } catch {
    return {};
  }
}

/** In the language of containerd's filters. */
function quoted(text: string): string {
  return JSON.stringify(text);
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
