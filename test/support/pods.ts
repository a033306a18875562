import type {
  Container,
  ContainerId,
  IdentifiedPod,
  ObservedContainer,
  ObservedPod,
  ObservedSandbox,
  PodSpec,
  PodUid,
  SandboxId,
} from "../../src/ground/model/index.ts";

export const testUid = "uid-1" as PodUid;

/** A pod as a source hands it on, with one container `main` unless told otherwise. */
export function testPod(spec: Partial<PodSpec> = {}, metadata: Partial<IdentifiedPod["metadata"]> = {}): IdentifiedPod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", namespace: "default", uid: testUid, ...metadata },
    spec: {
      restartPolicy: "Always",
      terminationGracePeriodSeconds: 30,
      containers: [testContainer("main")],
      ...spec,
    },
  };
}

export function testContainer(name: string, more: Partial<Container> = {}): Container {
  return { name, image: "busybox:1", ...more };
}

export const testSandboxId = "sandbox-0" as SandboxId;

export function testSandbox(more: Partial<ObservedSandbox> = {}): ObservedSandbox {
  return {
    id: testSandboxId,
    attempt: 0,
    state: "ready",
    createdAt: 1_000,
    network: "pod",
    ip: "10.1.0.5",
    additionalIps: [],
    runtimeHandler: "",
    ...more,
  };
}

/** `hash` defaults to the one that `testHash` gives for a container of that name. */
export function testObserved(
  name: string,
  more: Partial<ObservedContainer> & { hash?: string } = {},
): ObservedContainer {
  const { hash, ...rest } = more;
  return {
    id: `${name}-0` as ContainerId,
    sandboxId: testSandboxId,
    name,
    attempt: 0,
    state: "running",
    createdAt: 2_000,
    startedAt: 3_000,
    finishedAt: 0,
    exitCode: 0,
    reason: "",
    message: "",
    image: "busybox:1",
    imageRef: "sha256:1",
    imageId: "sha256:1",
    logPath: "",
    annotations: {
      hash: hash ?? testHash({ name }),
      restartCount: 0,
      terminationMessagePath: "/dev/termination-log",
      terminationMessagePolicy: "File",
      deletionGraceSeconds: undefined,
      terminationGraceSeconds: 30,
      preStop: undefined,
      ports: undefined,
    },
    mounts: [],
    resources: undefined,
    user: undefined,
    ...rest,
  };
}

export function testHash({ name }: { readonly name: string }): string {
  return `hash-${name}`;
}

export function exited(name: string, exitCode: number, more: Partial<ObservedContainer> = {}): ObservedContainer {
  const reason = exitCode === 0 ? "Completed" : "Error";
  return testObserved(name, { state: "exited", exitCode, reason, finishedAt: 4_000, ...more });
}

export function observedPod(more: Partial<ObservedPod> = {}): ObservedPod {
  return {
    uid: testUid,
    name: "web",
    namespace: "default",
    observedAt: 5_000,
    sandboxes: [testSandbox()],
    containers: [],
    ips: ["10.1.0.5"],
    ...more,
  };
}
