import assert from "node:assert/strict";
import { test } from "node:test";
import { gpu, inWorld, main, nic } from "../../../../test/support/claim-tests.ts";
import { claimingPod, timedOut } from "../../../../test/support/claim-world.ts";
import { processorTime } from "../../../../test/support/processor-time.ts";
import type { ClaimAnswer } from "../../../connections/plugins/index.ts";
import type { IdentifiedPod, PodStatus, PodUid } from "../../../ground/model/index.ts";
import { decodeClaimFile } from "./claim-file.ts";

function fromTemplate(
  status: PodStatus | undefined,
  claim: object = { resourceClaimTemplateName: "t" },
): IdentifiedPod {
  const pod = claimingPod("p", []);
  const spec = { ...pod.spec, resourceClaims: [{ name: "c", ...claim }] };
  return { ...pod, spec, ...(status === undefined ? {} : { status }) };
}

const made = (name: string | undefined): PodStatus => ({
  resourceClaimStatuses: [{ name: "c", ...(name === undefined ? {} : { resourceClaimName: name }) }],
});

test("what a pod waits for is said in the kubelet's words, and nothing is noted", () =>
  inWorld(async (world) => {
    world.driver(gpu);
    world.allocate("other", [gpu], ["q"]);
    world.allocate("mine", [gpu, "away.example.com"], ["p"]);
    world.allocate("free", [gpu], ["p"]);
    world.claims.set("default/none", { metadata: { name: "none", uid: "n" }, spec: {} });
    const cases: readonly (readonly [IdentifiedPod, string])[] = [
      [fromTemplate(undefined), 'pod "default/p": ResourceClaim not created yet'],
      [fromTemplate({ resourceClaimStatuses: [] }), 'pod "default/p": ResourceClaim not created yet'],
      [fromTemplate(undefined, {}), 'pod "default/p", spec.resourceClaim "c": none of the supported fields are set'],
      [fromTemplate(made("free")), "ResourceClaim default/free was not created for pod default/p (pod is not owner)"],
      [claimingPod("p", ["lost"]), 'fetch ResourceClaim lost: resourceclaims.resource.k8s.io "lost" not found'],
      [claimingPod("p", ["other"]), "pod p (p) is not allowed to use ResourceClaim other (uid-other)"],
      [claimingPod("p", ["none"]), "ResourceClaim none: not allocated"],
      [claimingPod("p", ["free", "mine"]), "DRA driver away.example.com is not registered"],
    ];
    for (const [pod, why] of cases) {
      assert.equal(await world.prepare(pod), `prepare dynamic resources: ${why}`);
      assert.equal(world.manager.holds("p" as PodUid), false);
      assert.equal(await world.release("p"), "done");
    }
    assert.deepEqual(world.driver(gpu).asked, []);
    // Whoever waits for a driver is woken when it comes.
    world.driver("away.example.com");
    assert.deepEqual(world.woken, ["p"]);
    assert.equal(await world.prepare(fromTemplate(made(undefined))), "done", "the cluster made none: none is needed");
  }));

test("claims are prepared in one call for each driver, noted before and after, and given back by the last pod", () =>
  inWorld(async (world) => {
    const drivers = [world.driver(gpu), world.driver(nic)];
    world.allocate("one", [gpu, nic], ["a", "b"]);
    world.allocate("two", [gpu], ["a"]);
    const [a, b] = [claimingPod("a", ["one", "two"]), claimingPod("b", ["one"])];
    const work = world.manager.prepare(a, false, world.signal);
    while (!world.file.isWriting) await Promise.resolve();
    assert.deepEqual(drivers[0]?.asked, [], "nobody is asked before it is on disk");
    assert.equal(await world.outcome(work), "done");
    assert.deepEqual(drivers[0]?.asked, ["prepare one,two"]);
    assert.deepEqual(drivers[1]?.asked, ["prepare one"]);
    assert.equal(await world.prepare(b), "done");
    assert.equal(await world.prepare(a), "done");
    assert.equal(drivers[0]?.asked.length, 1, "what is prepared is not prepared again");
    assert.deepEqual([...(decodeClaimFile(world.file.text ?? "").get("default/one")?.pods ?? [])], ["a", "b"]);
    assert.equal(await world.release("a"), "done");
    assert.deepEqual(drivers[0]?.asked.slice(1), ["unprepare two"]);
    assert.deepEqual(drivers[1]?.asked.slice(1), []);
    assert.equal(await world.release("b"), "done");
    assert.deepEqual(
      drivers.map((driver) => driver.prepared.size),
      [0, 0],
    );
    assert.equal(decodeClaimFile(world.file.text ?? "").size, 0);
  }));

test("a container gets the devices of the requests it names", () =>
  inWorld(async (world) => {
    world.driver(gpu);
    for (const claim of ["one", "two"]) world.allocate(claim, [gpu], ["p"]);
    const pod = claimingPod("p", ["one/b", "two", "one/b"]);
    assert.throws(
      () => world.manager.cdiDevicesFor(pod, main(pod)),
      /internal error: unable to get claim info for .* one/,
    );
    assert.equal(await world.prepare(pod), "done");
    const ids = [`${gpu}/one=b`, `${gpu}/two=a`, `${gpu}/two=b`];
    assert.deepEqual(world.manager.cdiDevicesFor(pod, main(pod)), ids);
    assert.deepEqual(world.manager.cdiDevicesFor(pod, { name: "plain" }), []);
    assert.deepEqual(
      world.manager.claimsOf(pod, main(pod)).map(({ label }) => label),
      ["claim:my-one/b", "claim:my-one/b", "claim:my-two"],
    );
  }));

test("an extended resource is served by the claim that the scheduler made for it", () =>
  inWorld(async (world) => {
    world.driver(gpu);
    world.allocate("made", [gpu], ["p"]);
    const resource = "vendor.com/gpu";
    const plain = claimingPod("p", []);
    const containers = [{ name: "main", resources: { requests: { [resource]: "1", cpu: "1" } } }, { name: "side" }];
    const mapping = { containerName: "main", resourceName: resource, requestName: "b" };
    const status = { extendedResourceClaimStatus: { resourceClaimName: "made", requestMappings: [mapping] } };
    const pod = { ...plain, spec: { ...plain.spec, containers }, status };
    assert.equal(await world.prepare(pod), "done");
    assert.deepEqual(world.manager.cdiDevicesFor(pod, main(pod)), [`${gpu}/made=b`]);
    assert.deepEqual(world.manager.cdiDevicesFor(pod, { name: "side" }), []);
    assert.equal(await world.release("p"), "done");
    assert.deepEqual(world.driver(gpu).asked, ["prepare made", "unprepare made"]);
    world.settings.extendedResources = false;
    assert.equal(await world.prepare(pod), "done");
    assert.equal(world.driver(gpu).asked.length, 2, "without the gate nobody is asked");
  }));

test("what drivers answer that is no answer", () =>
  inWorld(async (world) => {
    const driver = world.driver(gpu);
    for (const claim of ["one", "two"]) world.allocate(claim, [gpu], ["p"]);
    const pod = claimingPod("p", ["one", "two"]);
    const good: ClaimAnswer = { error: "", devices: [] };
    const device = { pool: "p", device: "d", requests: [], cdiIds: [] };
    const cases: readonly (readonly [ReadonlyMap<string, ClaimAnswer>, RegExp])[] = [
      [new Map([["uid-one", good]]), /NodePrepareResources skipped 1 ResourceClaims$/],
      [
        new Map([["uid-two", { ...good, error: "no power" }]]),
        /NodePrepareResources failed for ResourceClaim two: no power$/,
      ],
      [
        new Map([
          ["uid-two", good],
          ["stranger", good],
        ]),
        /NodePrepareResources returned result for unknown claim UID stranger$/,
      ],
      [
        new Map([["uid-two", { ...good, devices: Array(300).fill(device) }]]),
        /two: the driver names 300 devices, at most 256/,
      ],
      [
        new Map([["uid-two", { ...good, devices: [{ ...device, pool: "x".repeat(70_000) }] }]]),
        /two: the driver's answer has 7\d+ bytes, at most 65536/,
      ],
      [new Map([["uid-two", { ...good, error: "x".repeat(1e6) }]]), /^.{900,1300}$/],
    ];
    for (const [answer, why] of cases) {
      driver.behave = async () => answer;
      assert.match((await world.prepare(pod)) ?? "", why);
    }
    driver.behave = timedOut;
    const late = "NodePrepareResources: rpc error: code = DeadlineExceeded desc = context deadline exceeded";
    assert.equal(await world.prepare(pod), `prepare dynamic resources: ${late}`);
    assert.equal(driver.asked.at(-1), "prepare two", "the one that was done is not asked for again");
    driver.behave = () => undefined;
    assert.equal(await world.prepare(pod), "done");
    driver.behave = async () =>
      new Map([
        ["uid-one", { ...good, error: "busy" }],
        ["uid-two", good],
      ]);
    const busy = "unprepare dynamic resources: NodeUnprepareResources failed for ResourceClaim one: busy";
    assert.equal(await world.release("p"), busy);
    assert.deepEqual([...world.manager.state.keys()], ["default/one"]);
  }));

test("a restart: running pods need nobody; a claim that is prepared again has its devices once", () =>
  inWorld(async (world) => {
    world.driver(gpu);
    world.allocate("one", [gpu], ["a", "b"]);
    const [a, b] = [claimingPod("a", ["one"]), claimingPod("b", ["one"])];
    assert.equal(await world.prepare(a), "done");
    await world.restart(false);
    world.claims.clear();
    world.drivers.clear();
    assert.equal(await world.prepare(a, true), "done", "neither API nor driver");
    assert.deepEqual(world.manager.cdiDevicesFor(a, main(a)), [`${gpu}/one=a`, `${gpu}/one=b`]);
    // Its sandbox was lost with the machine: the driver has to prepare it again, the API is not needed.
    assert.equal(await world.prepare(a), `prepare dynamic resources: DRA driver ${gpu} is not registered`);
    const driver = world.driver(gpu);
    assert.deepEqual(world.woken, ["a"]);
    assert.equal(await world.prepare(a), "done");
    await world.restart(false);
    world.allocate("one", [gpu], ["a", "b"]);
    assert.equal(await world.prepare(b), "done");
    assert.deepEqual(driver.asked, ["prepare one", "prepare one"]);
    assert.deepEqual(world.manager.cdiDevicesFor(a, main(a)), [`${gpu}/one=a`, `${gpu}/one=b`]);
  }));

test("a pod that was never noted takes nothing from one that was", () =>
  inWorld(async (world) => {
    const driver = world.driver(gpu);
    world.allocate("one", [gpu], ["a"]);
    assert.equal(await world.prepare(claimingPod("a", ["one"])), "done");
    assert.match((await world.prepare(claimingPod("b", ["one"]))) ?? "", /pod b \(b\) is not allowed to use/);
    assert.equal(await world.release("b"), "done");
    assert.deepEqual(driver.asked, ["prepare one"]);
    assert.deepEqual([...driver.prepared], ["uid-one"]);
  }));

test("a driver that has gone keeps its pods from ending until it is back", () =>
  inWorld(async (world) => {
    const driver = world.driver(gpu);
    world.allocate("one", [gpu], ["a"]);
    await world.prepare(claimingPod("a", ["one"]));
    world.drivers.clear();
    assert.equal(await world.release("a"), `unprepare dynamic resources: DRA driver ${gpu} is not registered`);
    assert.ok(world.manager.holds("a" as PodUid));
    world.drivers.set(gpu, driver);
    world.manager.registered(gpu);
    assert.deepEqual(world.woken, ["a"]);
    assert.equal(await world.release("a"), "done");
  }));

test("a driver that hangs holds up its own pods only, and is not asked to undo what it is at", () =>
  inWorld(async (world) => {
    const [slow, quick] = [world.driver(gpu), world.driver(nic)];
    world.allocate("both", [gpu, nic], ["a"]);
    world.allocate("shared", [nic], ["a", "b"]);
    let answer: () => void = () => {};
    slow.behave = () =>
      new Promise((resolve) => {
        answer = () => resolve(new Map([["uid-both", { error: "", devices: [] }]]));
      });
    const leaving = new AbortController();
    const work = world.manager.prepare(claimingPod("a", ["both", "shared"]), false, leaving.signal);
    assert.equal(await world.outcome(work), undefined);
    const said = world.ledger.read("a" as PodUid)?.entries.filter(({ outcome }) => outcome === "running");
    assert.deepEqual(
      said?.map(({ subject, message }) => [subject, message]),
      [[gpu, "NodePrepareResources of both"]],
    );
    assert.equal(await world.prepare(claimingPod("b", ["shared"])), "done", "it does not use the driver that hangs");
    // The pod is deleted meanwhile: what it waits for is given up, what the driver does is not.
    leaving.abort(new DOMException("deleted", "AbortError"));
    assert.equal(await world.outcome(work), "deleted");
    const released = world.manager.release("a" as PodUid, world.signal);
    assert.equal(await world.outcome(released), undefined);
    assert.deepEqual(slow.asked, ["prepare both"]);
    world.allocate("both", [gpu, nic], ["a", "c"]);
    const refused = "prepare dynamic resources: ResourceClaim both is being unprepared";
    assert.equal(await world.prepare(claimingPod("c", ["both"])), refused);
    answer();
    slow.behave = () => undefined;
    assert.equal(await world.outcome(released), "done");
    assert.deepEqual(slow.asked, ["prepare both", "unprepare both"]);
    assert.deepEqual([...quick.prepared], ["uid-shared"]);
    const next = claimingPod("c", ["both"]);
    assert.equal(await world.prepare(next), "done");
    assert.ok(slow.prepared.has("uid-both"), "its late answer counts for nobody else");
    assert.equal(world.manager.cdiDevicesFor(next, main(next)).length, 4);
  }));

test("as many drivers as there can be: each is asked once for a claim that two pods share", () =>
  inWorld(async (world) => {
    const names = Array.from({ length: 100 }, (_, index) => `d${index}.example.com`);
    const drivers = names.map((name) => world.driver(name));
    for (let group = 0; group < 4; group++)
      world.allocate(`c${group}`, names.slice(25 * group, 25 * group + 25), ["a", "b"]);
    const answers: (() => void)[] = [];
    for (const driver of drivers) {
      driver.behave = (_, claims) =>
        new Promise((resolve) => {
          answers.push(() =>
            resolve(new Map(claims.map((claim) => [claim.uid, { error: "", devices: driver.devicesOf(claim) }]))),
          );
        });
    }
    const claims = ["c0", "c1", "c2", "c3"];
    const works = [claims, claims.toReversed()].map((names, index) =>
      world.manager.prepare(claimingPod("ab".charAt(index), names), false, world.signal),
    );
    for (const work of works) assert.equal(await world.outcome(work), undefined);
    for (let answer = answers.shift(); answer !== undefined; answer = answers.shift()) {
      answer();
      await world.settle();
    }
    for (const work of works) assert.equal(await world.outcome(work), "done");
    for (const { asked } of drivers) assert.equal(asked.length, 1, asked.join());
  }));

test("a pod with very many claims costs as much for each as one with fewer", () =>
  inWorld(async (world) => {
    world.driver(gpu);
    const cost = async (count: number): Promise<number> => {
      const pod = `p${count}`;
      const names = Array.from({ length: count }, (_, index) => `c${count}-${index}`);
      for (const name of names) world.allocate(name, [gpu], [pod]);
      const claiming = claimingPod(pod, names);
      return await processorTime(async () => {
        await world.landed(world.manager.prepare(claiming, false, world.signal));
        assert.equal(world.manager.cdiDevicesFor(claiming, main(claiming)).length, 2 * count);
        await world.landed(world.manager.release(pod as PodUid, world.signal));
      });
    };
    await cost(500);
    const few = Math.max(await cost(500), await cost(500));
    const many = Math.min(await cost(4_000), await cost(4_000));
    assert.ok(many < 20 * few, `500 took ${few} us, 4000 ${many} us: eight times as many`);
    assert.equal(world.manager.state.size, 0);
  }));

test("two pods that share a claim have it prepared once; the second hears why where the first fails", () =>
  inWorld(async (world) => {
    const driver = world.driver(gpu);
    world.allocate("one", [gpu], ["a", "b"]);
    let fail: (error: Error) => void = () => {};
    driver.behave = () =>
      new Promise((_, reject) => {
        fail = reject;
      });
    const works = ["a", "b"].map((name) => world.manager.prepare(claimingPod(name, ["one"]), false, world.signal));
    for (const work of works) assert.equal(await world.outcome(work), undefined);
    assert.equal(driver.asked.length, 1);
    driver.behave = timedOut;
    fail(new Error("gone"));
    const outcomes = await Promise.all(works.map((work) => world.outcome(work)));
    assert.deepEqual(outcomes.map((text) => /NodePrepareResources: (gone|rpc error)/.exec(text ?? "")?.[1]).sort(), [
      "gone",
      "rpc error",
    ]);
    assert.equal(driver.asked.length, 2);
  }));

test("another claim of the same name waits until the first is given back", () =>
  inWorld(async (world) => {
    const driver = world.driver(gpu);
    world.allocate("one", [gpu], ["a"]);
    await world.prepare(claimingPod("a", ["one"]));
    world.allocate("one", [gpu], ["b"], "uid-new");
    const old =
      "old ResourceClaim with same name one and different UID uid-one still exists (previous pod force-deleted?!)";
    assert.equal(await world.prepare(claimingPod("b", ["one"])), `prepare dynamic resources: ${old}`);
    assert.equal(await world.release("a"), "done");
    assert.equal(await world.prepare(claimingPod("b", ["one"])), "done");
    assert.deepEqual([...driver.prepared], ["uid-new"]);
  }));

test("a disk that takes nothing: nobody is asked, and it is said", () =>
  inWorld(async (world) => {
    const driver = world.driver(gpu);
    world.allocate("one", [gpu], ["a"]);
    world.file.failure = new Error("no space left on device");
    const why = "prepare dynamic resources: checkpoint ResourceClaim cache: no space left on device";
    assert.equal(await world.prepare(claimingPod("a", ["one"])), why);
    assert.deepEqual(driver.asked, []);
    world.file.failure = undefined;
    assert.equal(await world.prepare(claimingPod("a", ["one"])), "done");
  }));

test("a disk that is full after the drivers' answer: no container is made with what would be forgotten", () =>
  inWorld(async (world) => {
    const driver = world.driver(gpu);
    world.allocate("one", [gpu], ["a"]);
    const pod = claimingPod("a", ["one"]);
    driver.behave = () => {
      world.file.failure = new Error("no space left on device");
      return undefined;
    };
    const why = "prepare dynamic resources: checkpoint ResourceClaim state: no space left on device";
    assert.equal(await world.prepare(pod), why);
    assert.equal(await world.prepare(pod), why, "and again, until it is on disk");
    world.file.failure = undefined;
    assert.equal(await world.prepare(pod), "done");
    assert.deepEqual(driver.asked, ["prepare one"]);
    await world.restart(false);
    assert.deepEqual(world.manager.cdiDevicesFor(pod, main(pod)), [`${gpu}/one=a`, `${gpu}/one=b`]);
  }));

test("an agent that dies while claims of a running pod are noted again: the next one has them described", () =>
  inWorld(async (world) => {
    const driver = world.driver(gpu);
    world.allocate("one", [gpu], ["a"]);
    const pod = claimingPod("a", ["one"]);
    await world.prepare(pod);
    world.file.text = undefined;
    await world.restart(false);
    driver.behave = () => new Promise(() => {});
    world.manager.keep(pod);
    await world.settle();
    await world.restart(false);
    driver.behave = () => undefined;
    assert.deepEqual(world.manager.cdiDevicesFor(pod, main(pod)), [], "noted, and no more is known");
    world.manager.keep(pod);
    await world.settle();
    assert.deepEqual(world.manager.cdiDevicesFor(pod, main(pod)), [`${gpu}/one=a`, `${gpu}/one=b`]);
  }));

test("a pod that ends while its lost claims are looked up again has nothing prepared after its end", () =>
  inWorld(async (world) => {
    const driver = world.driver(gpu);
    world.allocate("one", [gpu], ["a"]);
    world.manager.keep(claimingPod("a", ["one"]));
    assert.equal(await world.release("a"), "done");
    await world.settle();
    assert.deepEqual(driver.asked, []);
    assert.equal(world.manager.holds("a" as PodUid), false);
  }));

test("a spoilt list is set aside, and what runs is noted again", () =>
  inWorld(async (world) => {
    const driver = world.driver(gpu);
    world.allocate("one", [gpu], ["a"]);
    const pod = claimingPod("a", ["one"]);
    await world.prepare(pod);
    world.file.text = world.file.text?.replace("uid-one", "uid-two");
    await world.restart(false);
    assert.equal(world.manager.holds("a" as PodUid), false);
    world.manager.keep(pod);
    world.manager.keep(pod);
    await world.settle();
    assert.deepEqual(driver.asked, ["prepare one", "prepare one"]);
    assert.equal(await world.release("a"), "done");
    assert.deepEqual([...driver.prepared], []);
  }));

test("claims of pods that are gone are given back once the pods are known, and again until it is done", () =>
  inWorld(async (world) => {
    const driver = world.driver(gpu);
    for (const name of ["one", "two"]) world.allocate(name, [gpu], ["gone", "here"]);
    await world.prepare(claimingPod("gone", ["one"]));
    await world.prepare(claimingPod("here", ["two"]));
    await world.restart(false);
    world.held.add("here" as PodUid);
    driver.behave = (method) => (method === "unprepare" ? timedOut() : undefined);
    void world.sweep.run(world.signal).catch(() => undefined);
    await world.clock.advance(120_000);
    await world.settle();
    assert.equal(driver.asked.length, 2, "nobody knows yet who is gone");
    world.sweep.podsKnown();
    await world.settle();
    assert.deepEqual(driver.asked.slice(2), ["unprepare one"]);
    for (let minute = 0; minute < 5; minute++) {
      await world.clock.advance(60_000);
      await world.settle();
    }
    assert.deepEqual(driver.asked.slice(2), Array(6).fill("unprepare one"));
    assert.equal(world.warnings.length, 1, "why is said once");
    driver.behave = () => undefined;
    await world.clock.advance(60_000);
    await world.settle();
    assert.deepEqual([...driver.prepared], ["uid-two"]);
    assert.deepEqual([...world.manager.state.keys()], ["default/two"]);
  }));

/** Any order of pods that come and go, drivers that fail and agents that die, at any write. */
