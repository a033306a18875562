import { keyHeader } from "../wire.ts";

const place = "nodelet-key";
let key = saved();

function saved(): string {
  try {
    return localStorage.getItem(place) ?? "";
  } catch {
    return "";
  }
}

/** Keeps what the login gave, where only pages of this host and port find it. */
export function keepKey(given: string): void {
  key = given;
  try {
    localStorage.setItem(place, given);
  } catch {
    // It holds until the page is closed.
  }
}

/** What every request to the agent carries; nothing where a gate lets people in. */
export function keyHeaders(): Record<string, string> {
  return key === "" ? {} : { [keyHeader]: key };
}
