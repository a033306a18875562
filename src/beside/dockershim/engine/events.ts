import { fieldsOf, labelTable, objectIn, textIn } from "./fields.ts";

export interface EngineEvent {
  readonly type: "container" | "image";
  readonly action: string;
  readonly id: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly timeNanos: bigint;
}

/** Too large for a number of JSON: picked out of the text itself. */
const timeNano = /"timeNano":\s*(\d{1,19})/;

/** One line of Docker's event stream; undefined when it is none. */
export function parseEvent(line: string): EngineEvent | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  const fields = fieldsOf(value);
  const actor = objectIn(fields, "Actor");
  const type = textIn(fields, "Type");
  const id = textIn(actor, "ID");
  if ((type !== "container" && type !== "image") || id === "") return undefined;
  return {
    type,
    action: textIn(fields, "Action"),
    id,
    attributes: labelTable(actor, "Attributes"),
    timeNanos: BigInt(timeNano.exec(line)?.[1] ?? 0),
  };
}

/** What the shim wants to hear of: not the exec events that every probe causes. */
export const wantedEvents = {
  type: ["container", "image"],
  event: [...["create", "start", "die", "destroy"], ...["pull", "tag", "untag", "delete", "load", "import"]],
};
