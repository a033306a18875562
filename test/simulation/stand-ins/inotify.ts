// The descriptors of inotify, as connections/host/removed-names.ts reads them.
import type { Notice } from "../machine/disk.ts";
import { machine } from "../machine/machine.ts";

const queues = new WeakMap<object, Notice[]>();

export function watchInode(path: string): number {
  const { disk, life } = machine();
  const inode = disk.find(path, "inotify_add_watch");
  const file = disk.hold(inode, path, 0, life);
  const queue: Notice[] = [];
  queues.set(file, queue);
  disk.listen({ inode, life, tell: (notice) => queue.push(notice) });
  return file.fd;
}

const masks = { movedFrom: 0x40, movedTo: 0x80, delete: 0x200 } as const;
const headerBytes = 16;

/** What has been noticed since the last read; undefined for a descriptor of another kind. */
export function noticesIn(fd: number): Buffer | undefined {
  const queue = queues.get(machine().disk.opened(fd, "read"));
  if (queue === undefined) return undefined;
  const parts: Buffer[] = [];
  for (const { type, name, cookie } of queue.splice(0)) {
    if (type !== "movedFrom" && type !== "movedTo" && type !== "delete") continue;
    const text = Buffer.from(`${name}\0`);
    const padded = Buffer.alloc(Math.ceil(text.length / 16) * 16);
    text.copy(padded);
    const header = Buffer.alloc(headerBytes);
    header.writeUInt32LE(masks[type], 4);
    header.writeUInt32LE(cookie, 8);
    header.writeUInt32LE(padded.length, 12);
    parts.push(header, padded);
  }
  return Buffer.concat(parts);
}
