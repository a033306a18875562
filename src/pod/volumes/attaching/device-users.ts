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

  /** The devices that a pod uses, by what the names of its users begin with. */
  usedBy(prefix: string): readonly { readonly device: string; readonly user: string }[] {
    return [...this.#users].flatMap(([device, users]) =>
      [...users].filter((user) => user.startsWith(prefix)).map((user) => ({ device, user })),
    );
  }

  has(device: string): boolean {
    return this.#users.has(device);
  }

  devices(): readonly string[] {
    return [...this.#users.keys()];
  }
}
