// What texts of the API must look like. Each function returns what is wrong, in the API's words; empty when nothing is.

const dnsLabelFormat = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const dnsSubdomainFormat = `${dnsLabelFormat}(\\.${dnsLabelFormat})*`;
const qualifiedNameFormat = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const labelValueFormat = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const envVarNameFormat = "[-._a-zA-Z][-._a-zA-Z0-9]*";
const configKeyFormat = "[-._a-zA-Z0-9]+";
const httpHeaderFormat = "[-A-Za-z0-9]+";

const dnsLabelPattern = new RegExp(`^${dnsLabelFormat}$`);
const dnsSubdomainPattern = new RegExp(`^${dnsSubdomainFormat}$`);
const qualifiedNamePattern = new RegExp(`^${qualifiedNameFormat}$`);
const labelValuePattern = new RegExp(`^${labelValueFormat}$`);
const envVarNamePattern = new RegExp(`^${envVarNameFormat}$`);
const configKeyPattern = new RegExp(`^${configKeyFormat}$`);
const httpHeaderPattern = new RegExp(`^${httpHeaderFormat}$`);

type Details = readonly string[];

export function dnsLabel(text: string): Details {
  const details = noLongerThan(text, 63);
  if (dnsLabelPattern.test(text)) return details;
  if (dnsSubdomainPattern.test(text)) return [...details, "must not contain dots"];
  const rule =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
  return [...details, mustMatch(rule, dnsLabelFormat, "my-name", "123-abc")];
}

export function dnsSubdomain(text: string): Details {
  const details = noLongerThan(text, 253);
  if (dnsSubdomainPattern.test(text)) return details;
  const rule =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
  return [...details, mustMatch(rule, dnsSubdomainFormat, "example.com")];
}

const qualifiedNameRule = mustMatch(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  qualifiedNameFormat,
  "MyName",
  "my.name",
  "123-abc",
);

/** `name` or `example.com/name`, as in the keys of labels. */
export function qualifiedName(text: string): Details {
  const parts = text.split("/");
  if (parts.length > 2) {
    return [
      `a qualified name ${qualifiedNameRule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const name = parts.at(-1) ?? "";
  const prefix = parts.length === 2 ? parts[0] : undefined;
  const details: string[] = [];
  if (prefix === "") details.push("prefix part must be non-empty");
  else if (prefix !== undefined) details.push(...dnsSubdomain(prefix).map((detail) => `prefix part ${detail}`));
  if (name === "") details.push("name part must be non-empty");
  else details.push(...noLongerThan(name, 63).map((detail) => `name part ${detail}`));
  if (!qualifiedNamePattern.test(name)) details.push(`name part ${qualifiedNameRule}`);
  return details;
}

export function labelValue(text: string): Details {
  const details = noLongerThan(text, 63);
  if (labelValuePattern.test(text)) return details;
  const rule =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
  return [...details, mustMatch(rule, labelValueFormat, "MyValue", "my_value", "12345")];
}

export function envVarName(text: string): Details {
  const rule =
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit";
  const matches = envVarNamePattern.test(text);
  return [
    ...(matches ? [] : [mustMatch(rule, envVarNameFormat, "my.env-name", "MY_ENV.NAME", "MyEnvName1")]),
    ...noDirectoryChange(text),
  ];
}

/** A key of a config map or secret. */
export function configKey(text: string): Details {
  const rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
  const matches = configKeyPattern.test(text);
  return [
    ...noLongerThan(text, 253),
    ...(matches ? [] : [mustMatch(rule, configKeyFormat, "key.name", "KEY_NAME", "key-name")]),
    ...noDirectoryChange(text),
  ];
}

export function httpHeaderName(text: string): Details {
  if (httpHeaderPattern.test(text)) return [];
  const rule = "a valid HTTP header must consist of alphanumeric characters or '-'";
  return [mustMatch(rule, httpHeaderFormat, "X-Header-Name")];
}

export function portName(text: string): Details {
  const details = [...noLongerThan(text, 15)];
  if (!/^[-a-z0-9]+$/.test(text)) {
    details.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (!/[a-z]/.test(text)) details.push("must contain at least one letter (a-z)");
  if (text.includes("--")) details.push("must not contain consecutive hyphens");
  if (text.startsWith("-") || text.endsWith("-")) details.push("must not begin or end with a hyphen");
  return details;
}

export function inRange(value: number, min: number, max: number): Details {
  return value >= min && value <= max ? [] : [`must be between ${min} and ${max}, inclusive`];
}

export const portNumber = (value: number): Details => inRange(value, 1, 65_535);
/** A user or group id. */
export const unixId = (value: number): Details => inRange(value, 0, 2 ** 31 - 1);
export const fileMode = (value: number): Details =>
  value >= 0 && value <= 0o777 ? [] : ["must be a number between 0 and 0777 (octal), both inclusive"];
export const nonNegative = (value: number): Details => (value < 0 ? ["must be greater than or equal to 0"] : []);

function noLongerThan(text: string, max: number): Details {
  return text.length > max ? [`must be no more than ${max} characters`] : [];
}

function noDirectoryChange(text: string): Details {
  if (text === "." || text === "..") return [`must not be '${text}'`];
  return text.startsWith("..") ? ["must not start with '..'"] : [];
}

function mustMatch(rule: string, format: string, ...examples: readonly string[]): string {
  return `${rule} (e.g. ${examples.map((example) => `'${example}', `).join(" or ")}regex used for validation is '${format}')`;
}
