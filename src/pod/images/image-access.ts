import { type Clock, explain, Limiter, type Logger, never, SerialByKey } from "../../ground/base/index.ts";
import { apiTime, canonicalName, parseImageReference, repositoryOf } from "../../ground/model/index.ts";
import type { Credential } from "./keyring.ts";
import { credentialHash } from "./pull-credentials.ts";
import {
  type PulledRecord,
  type PullRecords,
  RecordError,
  type RecordedAccount,
  type RecordedCredentials,
} from "./pull-records.ts";

/** Which present images a pod may use only after showing that it could have pulled them. */
export type VerificationPolicy =
  | { readonly type: "NeverVerify" | "NeverVerifyPreloadedImages" | "AlwaysVerify" }
  | { readonly type: "NeverVerifyAllowlistedImages"; readonly allowlist: readonly string[] };

/** Beyond this many, secrets that merely match an earlier one are no longer written down. */
const mostRecordedSecrets = 100;
/** Remembers with which credentials images were pulled, and asks for them before another pod uses such an image. */
export class ImageAccess {
  readonly #policy: VerificationPolicy;
  readonly #records: PullRecords;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #intents = new Map<string, number>();
  /** Records are read, changed and written back: one at a time. */
  readonly #turn = new Limiter(1);
  /** Pulls of one image with different credentials begin and end side by side, and have one intent. */
  readonly #intentTurn = new SerialByKey<string>();

  constructor(
    policy: VerificationPolicy,
    ports: { readonly records: PullRecords; readonly clock: Clock; readonly log: Logger },
  ) {
    this.#policy = policy;
    this.#records = ports.records;
    this.#clock = ports.clock;
    this.#log = ports.log;
  }

  /** Call once before the first pull: pulls that a crash cut off become records that ask for credentials. */
  async recover(images: readonly { readonly id: string; readonly names: readonly string[] }[]): Promise<void> {
    await this.#records.prepare();
    for (const intent of await this.#records.listIntents()) {
      const wanted = canonicalName(intent);
      const image = images.find(({ names }) => names.some((name) => name === intent || canonicalName(name) === wanted));
      if (image === undefined) continue;
      try {
        await this.#record(intent, image.id, undefined);
        await this.#records.deleteIntent(intent);
      } catch (error) {
        // The intent stays, and says the same.
        this.#log.error("Cannot write the record of a pull that was cut off", error, { image: intent });
      }
    }
  }

  /** True when the pod may use the present image without pulling it. `find` is asked only if it matters. */
  async mayUse(image: string, imageRef: string, find: () => Promise<readonly Credential[]>): Promise<boolean> {
    const { record, pulledByAgent } = await this.#known(image, imageRef);
    if (!this.#mustVerify(image, pulledByAgent)) return true;
    const recorded = record?.credentialMapping[repositoryOf(parseImageReference(image))];
    if (recorded === undefined) return false;
    if (recorded.nodePodsAccessible) return true;
    for (const credential of await find()) {
      const match = matchOf(credential, recorded);
      if (match === "none") continue;
      if (match === "partly" && recorded.kubernetesSecrets.length < mostRecordedSecrets) {
        // What is not written down is found out again the next time.
        await this.#record(image, imageRef, credentialsOf(credential)).catch((error: unknown) => {
          this.#log.error("Cannot write down who may use an image", error, { image, imageRef });
        });
      }
      return true;
    }
    return false;
  }

  /** What can't be told, for want of descriptors or because a file is damaged, is told as if the agent had pulled it. */
  async #known(
    image: string,
    imageRef: string,
  ): Promise<{ readonly record: PulledRecord | undefined; readonly pulledByAgent: boolean }> {
    try {
      const record = await this.#records.readPulled(imageRef);
      const isBeingPulled = this.#intents.has(image);
      return { record, pulledByAgent: record !== undefined || isBeingPulled || (await this.#records.hasIntent(image)) };
    } catch (error) {
      this.#log.warn("Cannot tell who pulled an image; pods have to show that they could pull it", {
        image,
        imageRef,
        err: explain(error),
      });
      return { record: undefined, pulledByAgent: true };
    }
  }

  /** Where this fails, the pull does not start, and nothing is to be called at its end. */
  async pullStarts(image: string): Promise<void> {
    await this.#intentTurn.run(image, async () => {
      await this.#records.writeIntent(image);
      this.#intents.set(image, (this.#intents.get(image) ?? 0) + 1);
    });
  }

  /** A failure to write is logged only: the intent stays, so the image keeps counting as pulled by the agent. */
  async pullSucceeded(image: string, imageRef: string, credential: Credential | undefined): Promise<void> {
    try {
      await this.#record(image, imageRef, credential === undefined ? forEverybody : credentialsOf(credential));
    } catch (error) {
      this.#log.error("Cannot write the record of a pulled image", error, { image, imageRef });
      return;
    }
    await this.pullFailed(image);
  }

  async pullFailed(image: string): Promise<void> {
    await this.#intentTurn.run(image, async () => {
      const others = (this.#intents.get(image) ?? 1) - 1;
      if (others > 0) {
        this.#intents.set(image, others);
        return;
      }
      this.#intents.delete(image);
      await this.#records.deleteIntent(image).catch((error: unknown) => {
        this.#log.error("Cannot remove the record of a pull", error, { image });
      });
    });
  }

  /** Drops records of images that are gone, except those written since `before`. */
  async prune(imageIds: ReadonlySet<string>, before: number): Promise<void> {
    for (const { imageRef, lastUpdatedTime } of await this.#records.listPulled()) {
      if (imageIds.has(imageRef) || Date.parse(lastUpdatedTime) >= before) continue;
      await this.#records.deletePulled(imageRef);
    }
  }

  #mustVerify(image: string, pulledByAgent: boolean): boolean {
    switch (this.#policy.type) {
      case "NeverVerify":
        return false;
      case "NeverVerifyPreloadedImages":
        return pulledByAgent;
      case "NeverVerifyAllowlistedImages":
        return !isAllowed(repositoryOf(parseImageReference(image)), this.#policy.allowlist);
      case "AlwaysVerify":
        return true;
    }
  }

  #record(image: string, imageRef: string, credentials: RecordedCredentials | undefined): Promise<void> {
    return this.#turn.run(async () => {
      const repository = repositoryOf(parseImageReference(image));
      const known = await this.#readable(imageRef);
      const merged = merge(known, repository, credentials);
      if (merged === undefined) return;
      const lastUpdatedTime = apiTime(this.#clock.now());
      await this.#records.writePulled({ lastUpdatedTime, imageRef, credentialMapping: merged });
    }, never);
  }

  /** A record that says nothing is written anew; one that can't be read for now might say much, and stays. */
  async #readable(imageRef: string): Promise<PulledRecord | undefined> {
    try {
      return await this.#records.readPulled(imageRef);
    } catch (error) {
      if (error instanceof RecordError) return undefined;
      throw error;
    }
  }
}

const forEverybody: RecordedCredentials = {
  kubernetesSecrets: [],
  kubernetesServiceAccounts: [],
  nodePodsAccessible: true,
};

function credentialsOf(credential: Credential): RecordedCredentials {
  const { source } = credential;
  switch (source.type) {
    case "node":
      return forEverybody;
    case "secret": {
      const { uid, namespace, name } = source;
      const secret = { uid, namespace, name, credentialHash: credentialHash(credential) };
      return { kubernetesSecrets: [secret], kubernetesServiceAccounts: [], nodePodsAccessible: false };
    }
    case "serviceAccount": {
      const { uid, namespace, name } = source;
      const account = { uid, namespace, name };
      return { kubernetesSecrets: [], kubernetesServiceAccounts: [account], nodePodsAccessible: false };
    }
  }
}

/** "partly": the same secret with other content, or the same content in another secret; worth writing down. */
function matchOf(credential: Credential, recorded: RecordedCredentials): "none" | "partly" | "fully" {
  const { source } = credential;
  switch (source.type) {
    case "node":
      return "none";
    case "serviceAccount":
      return recorded.kubernetesServiceAccounts.some((account) => isSame(account, source)) ? "fully" : "none";
    case "secret": {
      const hash = credentialHash(credential);
      const related = recorded.kubernetesSecrets.filter(
        (secret) => secret.credentialHash === hash || isSame(secret, source),
      );
      if (related.length === 0) return "none";
      return related.some((secret) => secret.credentialHash === hash && isSame(secret, source)) ? "fully" : "partly";
    }
  }
}

/** The mapping to write, or undefined when the record already says it all. */
function merge(
  known: PulledRecord | undefined,
  repository: string,
  added: RecordedCredentials | undefined,
): PulledRecord["credentialMapping"] | undefined {
  if (added === undefined) return known === undefined ? {} : undefined;
  const mapping = known?.credentialMapping ?? {};
  const present = mapping[repository];
  if (present?.nodePodsAccessible) return undefined;
  if (present === undefined || added.nodePodsAccessible) return { ...mapping, [repository]: added };
  const secrets = present.kubernetesSecrets.filter(
    (old) => !added.kubernetesSecrets.some((fresh) => isSame(old, fresh)),
  );
  const accounts = present.kubernetesServiceAccounts.filter(
    (old) => !added.kubernetesServiceAccounts.some((fresh) => isSame(old, fresh)),
  );
  const combined: RecordedCredentials = {
    kubernetesSecrets: [...secrets, ...added.kubernetesSecrets].sort(byIdentity),
    kubernetesServiceAccounts: [...accounts, ...added.kubernetesServiceAccounts].sort(byIdentity),
    nodePodsAccessible: false,
  };
  return { ...mapping, [repository]: combined };
}

function isSame(a: RecordedAccount, b: RecordedAccount): boolean {
  return a.uid === b.uid && a.namespace === b.namespace && a.name === b.name;
}

function byIdentity(a: RecordedAccount, b: RecordedAccount): number {
  const [left, right] = [a, b].map(({ namespace, name, uid }) => `${namespace}\0${name}\0${uid}`);
  return (left ?? "") < (right ?? "") ? -1 : 1;
}

function isAllowed(repository: string, allowlist: readonly string[]): boolean {
  return allowlist.some((entry) =>
    entry.endsWith("/*") ? repository.startsWith(entry.slice(0, -1)) : repository === entry,
  );
}
