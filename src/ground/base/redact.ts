// A log is read by more people than may know a password: what carries one by its name or its form is masked.
const masked = "<masked>";

const secretNames = new Set([
  "auth",
  "authorization",
  "accesstoken",
  "bearertoken",
  "clientsecret",
  "identitytoken",
  "password",
  "passwd",
  "privatekey",
  "refreshtoken",
  "registrytoken",
  "token",
]);

/**
 * True for a value that is secret by the name of its field, in whatever case and word separation that is written.
 * An object is looked into instead: `authorization: { mode }` is a setting.
 */
export function isSecret(name: string, value: unknown): boolean {
  if (value === null || value === undefined || value === "") return false;
  if (typeof value === "object" && !Array.isArray(value)) return false;
  return secretNames.has(name.replace(/[-_]/g, "").toLowerCase());
}

/** The text without passwords in URLs and without bearer or basic credentials. */
export function redactText(text: string): string {
  if (text.includes("@") && text.includes("://")) {
    text = text.replace(/(\w:\/\/[^\s/:@]*):[^\s/@]+@/g, `$1:${masked}@`);
  }
  // A digit tells a credential from prose such as "basic authentication".
  return text.replace(/\b(bearer|basic) +(?=\S*\d)[A-Za-z0-9._~+/-]{8,}=*/gi, `$1 ${masked}`);
}

/** For JSON.stringify: masks what is secret by name or form, and names what JSON has no words for. */
export function redactingReplacer(key: string, value: unknown): unknown {
  if (isSecret(key, value)) return masked;
  switch (typeof value) {
    case "string":
      return redactText(value);
    case "bigint":
      return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
    case "function":
    case "symbol":
      return String(value);
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "object":
      if (value instanceof Error) return redactText(value.message);
      if (value instanceof Map) return Object.fromEntries(value);
      if (value instanceof Set) return [...value];
      return value;
    default:
      return value;
  }
}
