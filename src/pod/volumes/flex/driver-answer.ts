/** What a driver says it can do; what it does not mention is as the contract has it. */
export interface DriverCapabilities {
  /** Its volumes are attached to a node and mounted there once for all pods. */
  readonly attach: boolean;
  readonly selinuxRelabel: boolean;
  readonly supportsMetrics: boolean;
  readonly fsGroup: boolean;
  readonly requiresFSResize: boolean;
}

export type DriverAnswer =
  | { readonly status: "Success"; readonly device: string; readonly capabilities: DriverCapabilities }
  | { readonly status: "Not supported" }
  /** `isRefusal`: by the driver's own words; else it was not understood. */
  | { readonly status: "Failure"; readonly isRefusal: boolean; readonly message: string };

const defaults: DriverCapabilities = {
  attach: true,
  selinuxRelabel: true,
  supportsMetrics: false,
  fsGroup: true,
  requiresFSResize: true,
};

/** Reads the one JSON object that a driver has to print. Names count in any spelling, as they do for the Go kubelet. */
export function readAnswer(command: string, text: string): DriverAnswer {
  const fields = fieldsOf(text);
  const misunderstood = (what: string): DriverAnswer => ({
    status: "Failure",
    isRefusal: false,
    message: `${command} command answered with ${what}`,
  });
  if (fields === undefined) return misunderstood("what is not JSON");
  const status = textIn(fields, "status");
  if (status === "Not supported") return { status };
  if (status !== "Success") {
    const reason = textIn(fields, "message");
    const message = `${command} command failed, status: ${status}, reason: ${reason}`;
    return { status: "Failure", isRefusal: true, message };
  }
  const capabilities = capabilitiesIn(fields.get("capabilities"));
  if (capabilities === undefined) return misunderstood("capabilities that are not true or false");
  return { status, device: textIn(fields, "device"), capabilities };
}

function capabilitiesIn(given: unknown): DriverCapabilities | undefined {
  if (given === undefined || given === null) return defaults;
  const fields = namesInLowerCase(given);
  if (fields === undefined) return undefined;
  const entries = Object.entries(defaults).map(([name, otherwise]) => [
    name,
    fields.get(name.toLowerCase()) ?? otherwise,
  ]);
  if (entries.some(([, value]) => typeof value !== "boolean")) return undefined;
  return Object.fromEntries(entries) as DriverCapabilities;
}

function fieldsOf(text: string): ReadonlyMap<string, unknown> | undefined {
  try {
    return namesInLowerCase(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function namesInLowerCase(value: unknown): ReadonlyMap<string, unknown> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return new Map(Object.entries(value).map(([name, field]) => [name.toLowerCase(), field]));
}

function textIn(fields: ReadonlyMap<string, unknown>, name: string): string {
  const value = fields.get(name);
  return typeof value === "string" ? value : "";
}
