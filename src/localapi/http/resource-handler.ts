import { methodNotAllowed } from "../api-error.ts";
import type { JsonObject } from "../json.ts";
import type { Kind } from "../kinds/index.ts";
import { createObject } from "../rest/create.ts";
import { type Deletion, deleteObject } from "../rest/delete.ts";
import { getObject, listObjects, matcherOf } from "../rest/list.ts";
import { patchObject, patchTypeOf } from "../rest/patch.ts";
import { replaceObject, type Target } from "../rest/update.ts";
import { readWatchRequest, startWatch } from "../rest/watch.ts";
import type { User, World, WriteOptions } from "../rest/world.ts";
import { readDeleteOptions, writeOptions } from "./options.ts";
import { presentList, presentObject } from "./present.ts";
import { json, type Reply } from "./reply.ts";

/** A request for objects of a kind, authenticated and authorized. */
export interface ResourceCall extends Target {
  readonly verb: string;
  readonly query: URLSearchParams;
  readonly contentType: string;
  readonly user: User;
  body(): Promise<unknown>;
  warn(message: string): void;
}

/** Answers what every kind answers alike. */
export async function handleResource(world: World, call: ResourceCall): Promise<Reply> {
  const { kind, namespace, name, verb, query } = call;
  switch (verb) {
    case "get":
      return json(presentObject(kind, getObject(world, kind, namespace, name, query.get("resourceVersion"))));
    case "list":
      return json(presentList(kind, listObjects(world, kind, namespace, query)));
    case "watch":
      return watch(world, call);
    case "create":
      return await create(world, call);
    case "update": {
      const { object, created } = replaceObject(world, call, await call.body(), optionsOf(call));
      return json(presentObject(kind, object), created ? 201 : 200);
    }
    case "patch": {
      const type = patchTypeOf(call.contentType);
      const { object, created } = patchObject(world, call, type, await call.body(), optionsOf(call));
      return json(presentObject(kind, object), created ? 201 : 200);
    }
    case "delete":
      return await remove(world, call);
    case "deletecollection":
      return await removeAll(world, call);
    default:
      throw methodNotAllowed();
  }
}

function optionsOf({ user, query, warn }: ResourceCall): WriteOptions {
  return writeOptions(user, query, warn);
}

async function create(world: World, call: ResourceCall): Promise<Reply> {
  const { kind, namespace, name } = call;
  if (name !== "") throw methodNotAllowed();
  return json(presentObject(kind, createObject(world, kind, namespace, await call.body(), optionsOf(call))), 201);
}

function watch(world: World, { kind, namespace, name, query }: ResourceCall): Reply {
  const chosen = new URLSearchParams(query);
  if (name !== "") {
    const fields = [chosen.get("fieldSelector"), `metadata.name=${name}`].filter(Boolean);
    chosen.set("fieldSelector", fields.join(","));
  }
  const request = readWatchRequest(kind, namespace, chosen);
  return {
    type: "watch",
    start: (sink) =>
      startWatch(world, request, {
        end: () => sink.end(),
        send: (event) =>
          sink.send(event.type === "ERROR" ? event : { ...event, object: presentObject(kind, event.object) }),
      }),
  };
}

async function remove(world: World, call: ResourceCall): Promise<Reply> {
  const { kind, namespace, name, query } = call;
  const wanted = readDeleteOptions(await call.body(), query);
  const options = optionsOf(call);
  const dryRun = options.dryRun || wanted.dryRun;
  return json(presentDeletion(kind, deleteObject(world, kind, namespace, name, wanted, { ...options, dryRun })));
}

function presentDeletion(kind: Kind, { object, gone }: Deletion): JsonObject {
  if (!gone || kind.returnsDeleted) return presentObject(kind, object);
  const { name, uid } = object.metadata;
  const details = { name, ...(kind.group !== "" && { group: kind.group }), kind: kind.plural, uid };
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details };
}

async function removeAll(world: World, call: ResourceCall): Promise<Reply> {
  const { kind, namespace, query } = call;
  const wanted = readDeleteOptions(await call.body(), query);
  const options = { ...optionsOf(call) };
  const dryRun = options.dryRun || wanted.dryRun;
  const items = world.store.list(kind.storage).filter(matcherOf(kind, namespace, query));
  for (const { metadata } of items) {
    deleteObject(world, kind, metadata.namespace ?? "", metadata.name ?? "", wanted, { ...options, dryRun });
  }
  return json(presentList(kind, { items, resourceVersion: String(world.store.revision) }));
}
