/** Who makes a request, as Kubernetes names users. */
export interface Identity {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

export const anonymous: Identity = { name: "system:anonymous", groups: ["system:unauthenticated"], extra: {} };

/** Every identity that was proven belongs to this group. */
export function authenticated(identity: Identity): Identity {
  const group = "system:authenticated";
  return identity.groups.includes(group) ? identity : { ...identity, groups: [...identity.groups, group] };
}
