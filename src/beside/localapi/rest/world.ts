import type { Clock } from "../../../ground/base/index.ts";
import type { ObjectMeta, Problem } from "../../../ground/model/index.ts";
import type { Kind } from "../kinds/index.ts";
import type { ApiObject } from "../object.ts";
import type { Store } from "../store/store.ts";

/** Who sent a request. */
export interface User {
  readonly name: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export interface WriteOptions {
  readonly user: User;
  /** Nothing is stored; the answer is what it would have been. */
  readonly dryRun: boolean;
  readonly unknownFields: "ignore" | "warn" | "refuse";
  /** Who owns which fields from now on; those who owned them before, when absent. */
  readonly managedFields?: NonNullable<ObjectMeta["managedFields"]>;
  /** Something the client should read although the request succeeds. */
  warn(message: string): void;
}

/** What is special about the objects of one kind. Every function is pure but for reading the store; refusals are thrown. */
export interface Strategy {
  /** Fills in what the client left open, and refuses what may not be. */
  admitCreate?(object: ApiObject, world: World, options: WriteOptions): ApiObject;
  admitUpdate?(object: ApiObject, old: ApiObject, world: World, options: WriteOptions): ApiObject;
  /** A write to a subresource that changes the object, such as `status`. */
  admitSubresource?(name: string, object: ApiObject, old: ApiObject, world: World, options: WriteOptions): ApiObject;
  validateCreate?(object: ApiObject): readonly Problem[];
  validateUpdate?(object: ApiObject, old: ApiObject): readonly Problem[];
  admitDelete?(object: ApiObject, world: World, options: WriteOptions): void;
  /** Present when deletion may take its time: how long, given what the client asked for. */
  graceSeconds?(object: ApiObject, asked: number | undefined): number;
  /** True while something must still happen before the object may go, beside its finalizers. */
  holds?(object: ApiObject, world: World): boolean;
  /** What changes on the object when its deletion begins. */
  markDeleted?(object: ApiObject): ApiObject;
}

/** What all operations share. */
export interface World {
  readonly store: Store;
  readonly clock: Clock;
  /** Where every kubelet is reached, whatever address its node tells. */
  readonly kubeletHost?: string;
  strategyOf(kind: Kind): Strategy;
}
