import type { LogSettings } from "../base/index.ts";
import { parseQuantity, wholeUnits } from "../model/index.ts";
import type { LoggingConfiguration } from "./kubelet-configuration.ts";

export function logSettingsOf({ format, options, ...logging }: LoggingConfiguration): LogSettings {
  const { splitStream, infoBufferSize } = options[format];
  const { verbosity, vmodule, flushFrequencyMs } = logging;
  const infoBufferBytes = splitStream ? Number(wholeUnits(parseQuantity(infoBufferSize))) : 0;
  return { format, verbosity, vmodule, splitStream, infoBufferBytes, flushFrequencyMs };
}
