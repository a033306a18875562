import { tryParseQuantity } from "../../model/index.ts";
import { label } from "../fields/fields.ts";
import { type RuleContext, shown } from "./rule-context.ts";

const largestVerbosity = 2 ** 31 - 1;

/** The section `logging`, checked before everything else because it decides how the rest is told. */
export function checkLogging({ config, problem, isOn }: RuleContext): void {
  const { logging } = config;
  const wrong = (field: string, name: string, kind: string, rule: string): void =>
    problem(field, `${name}: ${kind}: ${rule}`);
  if (logging.format !== "text" && logging.format !== "json") {
    const rule = 'Unsupported log format, must be "text" or "json"';
    wrong("logging.format", label("logging.format"), `Invalid value: ${shown(logging.format)}`, rule);
  }
  if (logging.format === "json" && !isOn("LoggingBetaOptions")) {
    wrong(
      "logging.format",
      label("logging.format"),
      "Forbidden",
      "Log format json is disabled, see LoggingBetaOptions feature",
    );
  }
  if (logging.verbosity > largestVerbosity) {
    const value = `Invalid value: ${logging.verbosity}`;
    wrong("logging.verbosity", label("logging.verbosity"), value, `Must be <= ${largestVerbosity}`);
  }
  if (logging.vmodule.length > 0 && logging.format !== "text") {
    wrong("logging.vmodule", label("logging.vmodule"), "Forbidden", "Only supported for text log format");
  }
  for (const [index, item] of logging.vmodule.entries()) {
    const path = `logging.vmodule[${index}]`;
    if (item.filePattern === "") wrong(path, path, "Required value", "File pattern must not be empty");
    if (/[=,]/.test(item.filePattern)) {
      const rule = "File pattern must not contain equal sign or comma";
      wrong(path, path, `Invalid value: ${shown(item.filePattern)}`, rule);
    }
    if (item.verbosity > largestVerbosity) {
      wrong(path, path, `Invalid value: ${item.verbosity}`, `Must be <= ${largestVerbosity}`);
    }
  }
  for (const format of ["text", "json"] as const) {
    if (isOn("LoggingAlphaOptions")) continue;
    const { splitStream, infoBufferSize } = logging.options[format];
    const rule = "Feature LoggingAlphaOptions is disabled";
    if (splitStream) {
      const path = `logging.options.${format}.splitStream` as const;
      wrong(path, label(path), "Forbidden", rule);
    }
    if (tryParseQuantity(infoBufferSize) !== 0n) {
      const path = `logging.options.${format}.infoBufferSize` as const;
      wrong(path, label(path), "Forbidden", `${rule}, found ${infoBufferSize}`);
    }
  }
}

/** The section `tracing`. */
export function checkTracing({ config, invalid }: RuleContext): void {
  const rate = config.tracing?.samplingRatePerMillion;
  if (rate !== undefined && rate < 0) {
    invalid("tracing.samplingRatePerMillion", `tracing.samplingRatePerMillion ${rate} must be positive`);
  }
  if (rate !== undefined && rate > 1_000_000) {
    const rule = "must be less than or equal to one million";
    invalid("tracing.samplingRatePerMillion", `tracing.samplingRatePerMillion ${rate} ${rule}`);
  }
  const endpoint = config.tracing?.endpoint;
  if (endpoint === undefined || !endpoint.includes("//")) return;
  const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(endpoint)?.[1]?.toLowerCase() ?? "";
  if (["dns", "unix", "unix-abstract"].includes(scheme)) return;
  const rule = "Options are none, dns, unix, or unix-abstract";
  invalid("tracing.endpoint", `tracing.endpoint ${shown(endpoint)}: unsupported scheme: ${shown(scheme)}. ${rule}`);
}
