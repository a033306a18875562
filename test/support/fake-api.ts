import { Readable } from "node:stream";
import { strategicMergePatch } from "../../src/beside/localapi/patch/strategic.ts";
import {
  ApiError,
  type HttpResponse,
  type KubeObject,
  type ListOptions,
  type ObjectList,
  type ObjectRef,
  type Patch,
  pathOf,
  type Resource,
} from "../../src/connections/kube/index.ts";

export interface ApiCall {
  readonly verb: "get" | "list" | "watch" | "create" | "update" | "patch" | "delete";
  readonly path: string;
  readonly body: unknown;
  readonly options: unknown;
}

/** Objects as an API server keeps them, in memory and without HTTP: versions, uids, conflicts, patches, watches. */
export class FakeApi {
  readonly calls: ApiCall[] = [];
  readonly #objects = new Map<string, KubeObject>();
  readonly #watches = new Set<OpenWatch>();
  /** What watches were told, for those that begin at an older version. */
  readonly #history: { readonly path: string; readonly type: string; readonly object: KubeObject }[] = [];
  #version = 0;
  #uids = 0;
  /** Called before every request; throws what the request is to fail with. */
  trouble: (call: ApiCall) => void = () => {};

  /** The last part of each path with its verb, such as `create nodes`; watches and lists left out. */
  get story(): readonly string[] {
    return this.calls
      .filter(({ verb }) => verb !== "watch" && verb !== "list")
      .map(
        ({ verb, path }) =>
          `${verb} ${path
            .split("/")
            .slice(path.endsWith("/status") ? -3 : -2)
            .join("/")}`,
      );
  }

  object<Kind extends KubeObject>(resource: Resource<Kind>, ref: ObjectRef): Kind | undefined {
    return this.#objects.get(pathOf(resource, { namespace: ref.namespace, name: ref.name })) as Kind | undefined;
  }

  /** Somebody else writes the object. */
  put<Kind extends KubeObject>(resource: Resource<Kind>, ref: ObjectRef, object: Kind): Kind {
    const path = pathOf(resource, { namespace: ref.namespace, name: ref.name });
    const known = this.#objects.get(path);
    const uid = object.metadata?.uid ?? known?.metadata?.uid ?? `uid-${++this.#uids}`;
    const metadata = {
      name: ref.name,
      namespace: ref.namespace,
      ...object.metadata,
      uid,
      resourceVersion: String(++this.#version),
    };
    const stored = JSON.parse(JSON.stringify({ ...object, metadata })) as Kind;
    this.#objects.set(path, stored);
    this.#tell(path, known === undefined ? "ADDED" : "MODIFIED", stored);
    return stored;
  }

  remove(resource: Resource<KubeObject>, ref: ObjectRef): void {
    const path = pathOf(resource, { namespace: ref.namespace, name: ref.name });
    const known = this.#objects.get(path);
    if (known === undefined) throw refusal(404, "NotFound", path);
    this.#objects.delete(path);
    this.#tell(path, "DELETED", {
      ...known,
      metadata: { ...known.metadata, resourceVersion: String(++this.#version) },
    });
  }

  async get<Kind extends KubeObject>(
    resource: Resource<Kind>,
    ref: ObjectRef,
    options: unknown,
    signal: AbortSignal,
  ): Promise<Kind> {
    const path = this.#begin("get", resource, ref, undefined, options, signal);
    const known = this.#objects.get(path);
    if (known === undefined) throw refusal(404, "NotFound", path);
    return known as Kind;
  }

  async list<Kind extends KubeObject>(
    resource: Resource<Kind>,
    ref: ObjectRef,
    options: ListOptions,
    signal: AbortSignal,
  ): Promise<ObjectList<Kind>> {
    const path = this.#begin("list", resource, ref, undefined, options, signal);
    const name = nameIn(options.fieldSelector);
    const items = [...this.#objects]
      .filter(([key, object]) => isBelow(path, key) && (name === undefined || object.metadata?.name === name))
      .map(([, object]) => object as Kind);
    return { metadata: { resourceVersion: String(this.#version) }, items };
  }

  async openWatch(
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    options: ListOptions,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const path = this.#begin("watch", resource, ref, undefined, options, signal);
    const body = new Readable({ read() {} });
    const watch = { path, name: nameIn(options.fieldSelector), body };
    const onAbort = (): void => void body.destroy();
    signal.addEventListener("abort", onAbort, { once: true });
    body.once("close", () => {
      signal.removeEventListener("abort", onAbort);
      this.#watches.delete(watch);
    });
    const since = Number(options.resourceVersion ?? this.#version);
    for (const { path: changed, type, object } of this.#history) {
      if (Number(object.metadata?.resourceVersion) > since) tell(watch, changed, type, object);
    }
    this.#watches.add(watch);
    return { status: 200, header: () => undefined, body };
  }

  async create<Kind extends KubeObject>(
    resource: Resource<Kind>,
    ref: ObjectRef,
    body: Kind,
    signal: AbortSignal,
  ): Promise<Kind> {
    const { namespace } = ref;
    const name = body.metadata?.name;
    this.#begin("create", resource, ref, body, undefined, signal);
    if (this.object(resource, { namespace, name }) !== undefined) throw refusal(409, "AlreadyExists", name ?? "");
    return this.put(resource, { namespace, name }, body);
  }

  async update<Kind extends KubeObject>(
    resource: Resource<Kind>,
    ref: ObjectRef,
    body: Kind,
    signal: AbortSignal,
  ): Promise<Kind> {
    const path = this.#begin("update", resource, ref, body, undefined, signal);
    const known = this.#objects.get(path);
    // As the real one: who names a uid means that object and no other.
    if (known === undefined) throw body.metadata?.uid ? refusal(409, "Conflict", path) : refusal(404, "NotFound", path);
    const version = body.metadata?.resourceVersion;
    if (version !== undefined && version !== known.metadata?.resourceVersion) throw refusal(409, "Conflict", path);
    return this.put(resource, ref, body);
  }

  async patch<Kind extends KubeObject>(
    resource: Resource<Kind>,
    ref: ObjectRef,
    patch: Patch,
    signal: AbortSignal,
  ): Promise<Kind> {
    const path = this.#begin("patch", resource, ref, patch.body, undefined, signal);
    const { subresource: _, ...plain } = ref;
    const known = this.object(resource, plain);
    if (known === undefined) throw refusal(404, "NotFound", path);
    const patched = strategicMergePatch(
      known as never,
      JSON.parse(JSON.stringify(patch.body)) as never,
      `core.v1.${resource.kind}`,
    );
    return this.put(resource, plain, patched as Kind);
  }

  /** At once, and only the object that the precondition names. */
  async delete(
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    options: { readonly preconditions?: { readonly uid?: string } },
    signal: AbortSignal,
  ): Promise<void> {
    const path = this.#begin("delete", resource, ref, undefined, options, signal);
    const uid = options.preconditions?.uid;
    const known = this.object(resource, ref)?.metadata?.uid;
    if (uid !== undefined && known !== undefined && uid !== known) throw refusal(409, "Conflict", path);
    this.remove(resource, ref);
  }

  /** Ends every watch, as a server does that goes away. */
  cutWatches(): void {
    for (const { body } of this.#watches) body.destroy(new Error("the server went away"));
  }

  #begin(
    verb: ApiCall["verb"],
    resource: Resource<KubeObject>,
    ref: ObjectRef,
    body: unknown,
    options: unknown,
    signal: AbortSignal,
  ): string {
    signal.throwIfAborted();
    const path = pathOf(resource, ref);
    const call = { verb, path, body, options };
    this.calls.push(call);
    this.trouble(call);
    return path;
  }

  /** What was asked and told so far is forgotten; watches can begin at the present version only. */
  compact(): void {
    this.calls.length = 0;
    this.#history.length = 0;
  }

  #tell(path: string, type: string, object: KubeObject): void {
    this.#history.push({ path, type, object });
    for (const watch of this.#watches) tell(watch, path, type, object);
  }
}

interface OpenWatch {
  readonly path: string;
  readonly name: string | undefined;
  readonly body: Readable;
}

function tell({ path: watched, name, body }: OpenWatch, path: string, type: string, object: KubeObject): void {
  if (!isBelow(watched, path) || (name !== undefined && object.metadata?.name !== name)) return;
  body.push(`${JSON.stringify({ type, object })}\n`);
}

export function refusal(code: number, reason: string, what: string): ApiError {
  return new ApiError({ code, reason, message: `${reason}: ${what}`, request: what });
}

function nameIn(fieldSelector: string | undefined): string | undefined {
  return fieldSelector?.startsWith("metadata.name=") ? fieldSelector.slice("metadata.name=".length) : undefined;
}

/** Whether the object is one of those that the path lists, in one namespace or in all of them. */
function isBelow(listed: string, object: string): boolean {
  if (object.startsWith(`${listed}/`)) return true;
  const slash = listed.lastIndexOf("/");
  const [group, plural] = [listed.slice(0, slash), listed.slice(slash + 1)];
  const [namespaces, , kind, ...rest] = object.startsWith(`${group}/`) ? object.slice(group.length + 1).split("/") : [];
  return namespaces === "namespaces" && kind === plural && rest.length === 1;
}
