/** Which pods use a volume that is staged once for all of them. */
export class DeviceUsers {
  readonly #users = new Map<string, Set<string>>();

  add(device: string, user: string): void {
    const users = this.#users.get(device) ?? new Set();
    this.#users.set(device, users.add(user));
  }

  /** True when nobody else uses it. */
  remove(device: string, user: string): boolean {
    const users = this.#users.get(device);
    users?.delete(user);
    if (users !== undefined && users.size > 0) return false;
    this.#users.delete(device);
    return true;
  }

  has(device: string): boolean {
    return this.#users.has(device);
  }

  devices(): readonly string[] {
    return [...this.#users.keys()];
  }
}
