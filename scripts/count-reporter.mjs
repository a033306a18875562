// A reporter for node:test that only counts, for the closing line of `npm test`: writes
// {"passed","failed","skipped"}.
export default async function* countReporter(events) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for await (const { type, data } of events) {
    if (type !== "test:pass" && type !== "test:fail") continue;
    // A suite is counted by the tests in it.
    if (data.details?.type === "suite") continue;
    if (type === "test:fail") counts.failed++;
    else if (data.skip !== undefined || data.todo !== undefined) counts.skipped++;
    else counts.passed++;
  }
  yield JSON.stringify(counts);
}
