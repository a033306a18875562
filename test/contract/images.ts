import assert from "node:assert/strict";
import { test } from "node:test";
import { ImageSpec } from "../../src/connections/cri/index.ts";
import { fails, type Pods } from "./pods.ts";

export function imageContract(pods: Pods): void {
  const status = (image: string) =>
    pods.images.imageStatus({ image: ImageSpec.fromPartial({ image }), verbose: false });

  test("an image on the node has an id, a size and its name, and is found by name and by id", async () => {
    const name = pods.subject.image;
    const { image } = await status(name);
    assert.match(image?.id ?? "", /^sha256:[0-9a-f]{64}$/);
    assert.ok((image?.size ?? 0n) > 0n);
    assert.ok(image?.repoTags.includes(name));
    assert.deepEqual((await status(image?.id ?? "")).image, image);
    const { images } = await pods.images.listImages({ filter: undefined });
    assert.deepEqual(
      images.filter(({ repoTags }) => repoTags.includes(name)),
      [image],
    );
  });

  test("an image that is not there: status without an image, removing is fine, no name is an error", async () => {
    assert.equal((await status("localhost/no/such:image")).image, undefined);
    await pods.images.removeImage({ image: ImageSpec.fromPartial({ image: "localhost/no/such:image" }) });
    await assert.rejects(status(""), fails("Unknown"));
  });

  test("the image file system has a mount point and a time", async () => {
    const { imageFilesystems } = await pods.images.imageFsInfo({});
    assert.ok(imageFilesystems.length > 0);
    assert.ok(imageFilesystems.every(({ fsId, timestamp }) => fsId?.mountpoint.startsWith("/") && timestamp > 0n));
  });
}
