import type { JsonObject } from "../json.ts";
import { readApplier } from "../rest/apply.ts";
import { createObject } from "../rest/create.ts";
import { type Deletion, deleteObject } from "../rest/delete.ts";
import { unmetExpectations } from "../rest/kind-fates.ts";
import { listObjects, matcherOf, readObject } from "../rest/list.ts";
import { applyObject, patchObject, patchTypeOf } from "../rest/patch.ts";
import { replaceObject, type WriteTarget, type Written } from "../rest/update.ts";
import { readWatchRequest, startWatch } from "../rest/watch.ts";
import type { User, World, WriteOptions } from "../rest/world.ts";
import { methodNotAllowed } from "../status-error.ts";
import { readDeleteOptions, writeOptions } from "./options.ts";
import { Presenter } from "./present.ts";
import { json, type Reply } from "./reply.ts";

/** A request for objects of a kind, authenticated and authorized. */
export interface ResourceCall extends WriteTarget {
  readonly verb: string;
  readonly query: URLSearchParams;
  readonly contentType: string;
  readonly accept: string;
  readonly user: User;
  body(): Promise<unknown>;
  warn(message: string): void;
}

/** Answers what every kind answers alike. */
export async function handleResource(world: World, call: ResourceCall): Promise<Reply> {
  const { kind, namespace, name, verb, query } = call;
  const presenter = new Presenter(kind, call.accept, query, () => world.clock.now());
  const written = ({ object, created }: Written): Reply => {
    if (call.subresource === "") for (const text of unmetExpectations(kind, object)) call.warn(text);
    return json(presenter.object(object), created ? 201 : 200);
  };
  switch (verb) {
    case "get":
      return json(presenter.object(readObject(world, kind, namespace, name, query.get("resourceVersion"))));
    case "list":
      return json(presenter.list(listObjects(world, kind, namespace, query)));
    case "watch":
      return watch(world, call, presenter);
    case "create": {
      if (name !== "") throw methodNotAllowed();
      const body = await call.body();
      return written({ object: createObject(world, kind, namespace, body, optionsOf(call)), created: true });
    }
    case "update":
      if (name === "") throw methodNotAllowed();
      return written(replaceObject(world, call, await call.body(), optionsOf(call)));
    case "patch": {
      if (name === "") throw methodNotAllowed();
      const type = patchTypeOf(call.contentType);
      if (type === "apply") {
        const applier = readApplier(query);
        return written(applyObject(world, call, await call.body(), applier, optionsOf(call)));
      }
      return written(patchObject(world, call, type, await call.body(), optionsOf(call)));
    }
    case "delete":
      return await remove(world, call, presenter);
    case "deletecollection":
      return await removeAll(world, call, presenter);
    default:
      throw methodNotAllowed();
  }
}

function optionsOf({ user, query, warn }: ResourceCall): WriteOptions {
  return writeOptions(user, query, warn);
}

function watch(world: World, { kind, namespace, name, query }: ResourceCall, presenter: Presenter): Reply {
  const chosen = new URLSearchParams(query);
  if (name !== "") {
    const fields = [chosen.get("fieldSelector"), `metadata.name=${name}`].filter(Boolean);
    chosen.set("fieldSelector", fields.join(","));
  }
  const request = readWatchRequest(kind, namespace, chosen);
  return {
    type: "watch",
    start: (send, end) => startWatch(world, request, { end, send: (event) => send(presenter.event(event)) }),
  };
}

async function remove(world: World, call: ResourceCall, presenter: Presenter): Promise<Reply> {
  const { kind, namespace, name, query } = call;
  const wanted = readDeleteOptions(await call.body(), query);
  const options = optionsOf(call);
  const dryRun = options.dryRun || wanted.dryRun;
  const deletion = deleteObject(world, kind, namespace, name, wanted, { ...options, dryRun });
  return json(!deletion.gone || kind.returnsDeleted ? presenter.object(deletion.object) : success(call, deletion));
}

function success({ kind }: ResourceCall, { object }: Deletion): JsonObject {
  const { name, uid } = object.metadata;
  const details = { name, ...(kind.group !== "" && { group: kind.group }), kind: kind.plural, uid };
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details };
}

async function removeAll(world: World, call: ResourceCall, presenter: Presenter): Promise<Reply> {
  const { kind, namespace, query } = call;
  const wanted = readDeleteOptions(await call.body(), query);
  const options = optionsOf(call);
  const dryRun = options.dryRun || wanted.dryRun;
  const items = world.store.list(kind.storage).filter(matcherOf(kind, namespace, query));
  for (const { metadata } of items) {
    deleteObject(world, kind, metadata.namespace ?? "", metadata.name ?? "", wanted, { ...options, dryRun });
  }
  await world.store.flushed();
  return json(presenter.list({ items, resourceVersion: String(world.store.published.revision) }));
}
