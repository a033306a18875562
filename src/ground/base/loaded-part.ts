import { isShortage } from "./errors.ts";
import { Topic } from "./topic.ts";

/** A part of the code could not be loaded, and never will be in this process. */
export const partsLost = new Topic<[error: unknown]>();

/**
 * What an `import(…)` gives, of code that is loaded where it is first needed. Node remembers for good that a file could
 * not be read, also where it was only for want of descriptors at that moment: whatever the part is for, probes or
 * certificates, would fail until the process ends. So it has to end, and be started anew.
 */
export async function loadedPart<Part>(loading: Promise<Part>): Promise<Part> {
  try {
    return await loading;
  } catch (error) {
    if (isShortage(error)) partsLost.tell(error);
    throw error;
  }
}
