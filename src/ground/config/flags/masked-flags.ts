/** Flags whose values are not for everybody who may read logs or `/flagz`. */
const secretFlags: ReadonlySet<string> = new Set(["manifest-url-header", "storage-driver-password"]);

/** The flags as they may be shown. */
export function maskedFlags(
  flags: Readonly<Record<string, string>>,
): readonly (readonly [name: string, value: string])[] {
  return Object.entries(flags).map(([name, value]) => [
    name,
    value !== "" && isSecret(name, value) ? "<masked>" : value,
  ]);
}

function isSecret(name: string, value: string): boolean {
  // An address may hold a password or a token.
  return secretFlags.has(name) || (name === "cloud-instance" && /^https?:.*[@?]/.test(value));
}
