/** Who the runtime says it is. */
export interface RuntimeIdentity {
  /** Also the scheme of container ids: `containerd`. */
  readonly name: string;
  readonly version: string;
  readonly apiVersion: string;
}

/** node.status.nodeInfo.containerRuntimeVersion. Distribution suffixes (`1.6.20~ds1`) are dropped unless they are semver. */
export function containerRuntimeVersion({ name, version }: RuntimeIdentity): string {
  return `${name}://${readVersion(version)}`;
}

function readVersion(version: string): string {
  const identifier = "(?:0|[1-9]\\d*|\\d*[A-Za-z-][0-9A-Za-z-]*)";
  const number = "(?:0|[1-9]\\d*)";
  const semver = new RegExp(
    `^v?(${number}\\.${number}\\.${number}(?:-${identifier}(?:\\.${identifier})*)?(?:\\+[0-9A-Za-z.-]+)?)$`,
  );
  const exact = semver.exec(version)?.[1];
  if (exact !== undefined) return exact;
  const numeric = /^\s*v?((?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*))+)/.exec(version)?.[1];
  return numeric ?? "Unknown";
}
