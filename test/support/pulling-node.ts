import assert from "node:assert/strict";
import type { IdentifiedPod, PodEvent } from "../../src/ground/model/index.ts";
import { ImageError } from "../../src/pod/images/image-error.ts";
import {
  ImagePuller,
  type ImagePullerPorts,
  type ImagePullerSettings,
  type ImageRequest,
} from "../../src/pod/images/image-puller.ts";
import type { Credential } from "../../src/pod/images/keyring.ts";
import type { PullOutcome } from "../../src/pod/images/pull-attempts.ts";
import { FakeClock } from "./fake-clock.ts";
import { FakeImageService } from "./fake-image-service.ts";

export const image = "reg.io/app:1";

export class Node {
  readonly clock = new FakeClock();
  readonly service = new FakeImageService();
  readonly events: string[] = [];
  readonly outcomes: PullOutcome[] = [];
  readonly used: string[] = [];
  readonly puller: ImagePuller;
  logins: readonly string[] = [];

  constructor(settings: Partial<ImagePullerSettings> = {}, ports: Partial<ImagePullerPorts> = {}) {
    this.puller = new ImagePuller(
      {
        registryPullQps: 0,
        registryBurst: 10,
        longestPullMs: undefined,
        serializeImagePulls: true,
        maxParallelImagePulls: undefined,
        imagesPerRuntimeHandler: false,
        ...settings,
      },
      {
        images: this.service,
        access: undefined,
        clock: this.clock,
        onPull: (outcome) => this.outcomes.push(outcome),
        credentials: { find: async () => this.logins.map(credentialOf) },
        recordEvent: (pod, event) => this.events.push(describe(pod, event)),
        onUse: (id) => this.used.push(id),
        ...ports,
      },
    );
  }

  ensure(request: Partial<ImageRequest> = {}, signal = new AbortController().signal) {
    return this.puller.ensure(
      {
        pod: podOf("p1"),
        image,
        pullPolicy: "IfNotPresent",
        fieldPath: "spec.containers{c}",
        pullSecrets: [],
        sandboxConfig: undefined,
        runtimeHandler: "",
        ...request,
      },
      signal,
    );
  }

  async refusal(request: Partial<ImageRequest> = {}): Promise<ImageError> {
    const error: unknown = await this.ensure(request).then(
      () => assert.fail("the image was had"),
      (reason) => reason,
    );
    assert.ok(error instanceof ImageError, String(error));
    return error;
  }

  takeEvents(): readonly string[] {
    return this.events.splice(0);
  }
}

export function describe(pod: IdentifiedPod, { type, reason, message, fieldPath }: PodEvent): string {
  return `${pod.metadata.name} ${fieldPath ?? "-"} ${type} ${reason} ${message}`;
}

export function podOf(uid: string, annotations: Record<string, string> = {}): IdentifiedPod {
  return { metadata: { name: uid, namespace: "ns", uid, annotations }, spec: { containers: [] } };
}

export function credentialOf(login: string): Credential {
  const [username = "", password = ""] = login.split(":");
  return { username, password, source: { type: "node" } };
}

export const at = "p1 spec.containers{c}";
