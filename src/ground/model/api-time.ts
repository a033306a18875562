/** A time as the API writes it: RFC 3339 in whole seconds. */
export function apiTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -".000Z".length)}Z`;
}
