/** 0.0.0.0 and :: ask for the default address of their family; they are none. */
export function isUnspecified(ip: string): boolean {
  return ip === "0.0.0.0" || ip === "::";
}
