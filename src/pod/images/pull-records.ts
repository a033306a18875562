import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { aFewAtOnce, FieldReader, ifThere, saveFile, settleAtMost } from "../../ground/base/index.ts";

/** Which credentials an image was pulled with; the kubelet's own format, so that either agent can read the other's. */
export interface PulledRecord {
  readonly lastUpdatedTime: string;
  readonly imageRef: string;
  /** By repository. An image without an entry was pulled under unknown circumstances. */
  readonly credentialMapping: Readonly<Record<string, RecordedCredentials>>;
}

export interface RecordedCredentials {
  readonly kubernetesSecrets: readonly RecordedSecret[];
  readonly kubernetesServiceAccounts: readonly RecordedAccount[];
  /** Any pod of the node may use the image. */
  readonly nodePodsAccessible: boolean;
}

export interface RecordedAccount {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

export interface RecordedSecret extends RecordedAccount {
  readonly credentialHash: string;
}

/** A record is there and says nothing. */
export class RecordError extends Error {
  override readonly name = "RecordError";
}

const apiVersion = "kubelet.config.k8s.io/v1alpha1";

/** The files under `<root-dir>/image_manager`: one per pull under way, one per image pulled. */
export class PullRecords {
  readonly #pulling: string;
  readonly #pulled: string;

  constructor(directory: string) {
    this.#pulling = join(directory, "pulling");
    this.#pulled = join(directory, "pulled");
  }

  async prepare(): Promise<void> {
    for (const directory of [this.#pulling, this.#pulled]) await mkdir(directory, { recursive: true, mode: 0o700 });
  }

  async writeIntent(image: string): Promise<void> {
    await writeRecord(this.#pulling, image, { kind: "ImagePullIntent", apiVersion, image });
  }

  async deleteIntent(image: string): Promise<void> {
    await rm(recordPath(this.#pulling, image), { force: true });
  }

  async hasIntent(image: string): Promise<boolean> {
    return (await ifThere(stat(recordPath(this.#pulling, image)))) !== undefined;
  }

  async listIntents(): Promise<readonly string[]> {
    const records = await readableRecords(this.#pulling);
    return records.map((record) => record.string("image")).filter((image) => image !== "");
  }

  /**
   * Undefined: there is none. Throws where there is one that can't be read, or that says nothing (RecordError): whoever
   * takes that for none takes the image for one that came with the machine, and gives it to everybody.
   */
  async readPulled(imageRef: string): Promise<PulledRecord | undefined> {
    const path = recordPath(this.#pulled, imageRef);
    const record = await ifThere(readRecord(path));
    if (record === undefined) return undefined;
    const pulled = asPulledRecord(record);
    if (pulled === undefined) throw new RecordError(`"${path}" is no record of a pulled image`);
    return pulled;
  }

  async writePulled(record: PulledRecord): Promise<void> {
    // Go leaves out what is empty; so do we, for the files to be the same.
    const credentialMapping = Object.fromEntries(
      Object.entries(record.credentialMapping).map(([repository, credentials]) => [
        repository,
        withoutEmpty(credentials),
      ]),
    );
    const { lastUpdatedTime, imageRef } = record;
    await writeRecord(this.#pulled, imageRef, {
      kind: "ImagePulledRecord",
      apiVersion,
      lastUpdatedTime,
      imageRef,
      ...(Object.keys(credentialMapping).length === 0 ? {} : { credentialMapping }),
    });
  }

  async deletePulled(imageRef: string): Promise<void> {
    await rm(recordPath(this.#pulled, imageRef), { force: true });
  }

  async listPulled(): Promise<readonly PulledRecord[]> {
    const records = await readableRecords(this.#pulled);
    return records.flatMap((record) => asPulledRecord(record) ?? []);
  }
}

function recordPath(directory: string, key: string): string {
  return join(directory, `sha256-${createHash("sha256").update(key).digest("hex")}`);
}

async function writeRecord(directory: string, key: string, record: object): Promise<void> {
  await saveFile(recordPath(directory, key), `${JSON.stringify(record)}\n`, 0o600);
}

function withoutEmpty({
  kubernetesSecrets,
  kubernetesServiceAccounts,
  nodePodsAccessible,
}: RecordedCredentials): object {
  return {
    ...(kubernetesSecrets.length === 0 ? {} : { kubernetesSecrets }),
    ...(kubernetesServiceAccounts.length === 0 ? {} : { kubernetesServiceAccounts }),
    ...(nodePodsAccessible ? { nodePodsAccessible } : {}),
  };
}

/** Those that can't be read stay where they are: what they are about is asked by their names. */
async function readableRecords(directory: string): Promise<readonly FieldReader[]> {
  const names = (await readdir(directory)).filter((name) => /^sha256-[0-9a-f]{64}$/.test(name)).sort();
  const records = await settleAtMost(aFewAtOnce, names, (name) => readRecord(join(directory, name)));
  return records.flatMap((record) => (record.status === "fulfilled" ? [record.value] : []));
}

async function readRecord(path: string): Promise<FieldReader> {
  const text = await readFile(path, "utf8");
  try {
    return FieldReader.of(JSON.parse(text), "", []);
  } catch (error) {
    throw new RecordError(`"${path}" can't be understood`, { cause: error });
  }
}

/** The record, or undefined when it cannot be understood. */
function asPulledRecord(record: FieldReader): PulledRecord | undefined {
  const imageRef = record.string("imageRef");
  if (record.string("kind") !== "ImagePulledRecord" || imageRef === "") return undefined;
  const mapping = record.object("credentialMapping");
  return {
    imageRef,
    lastUpdatedTime: record.string("lastUpdatedTime"),
    credentialMapping: Object.fromEntries(
      mapping.names().map((repository) => [repository, asCredentials(mapping.object(repository))]),
    ),
  };
}

function asCredentials(entry: FieldReader): RecordedCredentials {
  return {
    kubernetesSecrets: entry.objects("kubernetesSecrets").map((secret) => ({
      ...asAccount(secret),
      credentialHash: secret.string("credentialHash"),
    })),
    kubernetesServiceAccounts: entry.objects("kubernetesServiceAccounts").map(asAccount),
    nodePodsAccessible: entry.boolean("nodePodsAccessible"),
  };
}

function asAccount(entry: FieldReader): RecordedAccount {
  return { uid: entry.string("uid"), namespace: entry.string("namespace"), name: entry.string("name") };
}
