/** What Kubernetes asks of label keys and values; each function lists what is wrong, nothing when all is well. */

const nameFormat = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const subdomainFormat = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

const namePattern = new RegExp(`^${nameFormat}$`);
const subdomainPattern = new RegExp(`^${subdomainFormat}$`);

const nameRule =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character " +
  `(e.g. 'MyName', or 'my.name', or '123-abc', regex used for validation is '${nameFormat}')`;

/** A label or taint key: an optional DNS subdomain and a slash, then a name. */
export function qualifiedNameProblems(key: string): string[] {
  const parts = key.split("/");
  if (parts.length > 2) {
    return [`a qualified name ${nameRule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`];
  }
  const name = parts.at(-1) ?? "";
  const problems: string[] = [];
  if (parts.length === 2)
    problems.push(...subdomainProblems(parts[0] ?? "").map((problem) => `prefix part ${problem}`));
  if (name === "") problems.push("name part must be non-empty");
  else if (name.length > 63) problems.push("name part must be no more than 63 characters");
  if (!namePattern.test(name)) problems.push(`name part ${nameRule}`);
  return problems;
}

export function labelValueProblems(value: string): string[] {
  const problems: string[] = [];
  if (value.length > 63) problems.push("must be no more than 63 characters");
  if (value !== "" && !namePattern.test(value)) {
    problems.push(
      "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start " +
        `and end with an alphanumeric character (e.g. 'MyValue', or 'my_value', or '12345', regex used for validation is '(${nameFormat})?')`,
    );
  }
  return problems;
}

function subdomainProblems(domain: string): string[] {
  if (domain === "") return ["must be non-empty"];
  const problems: string[] = [];
  if (domain.length > 253) problems.push("must be no more than 253 characters");
  if (!subdomainPattern.test(domain)) {
    problems.push(
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start " +
        `and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${subdomainFormat}')`,
    );
  }
  return problems;
}
