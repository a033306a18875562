/** Whether who asks can unpack gzip, by its Accept-Encoding. */
export function acceptsGzip(accepted: string | undefined): boolean {
  return /(?:^|,)\s*gzip\s*(?:,|;(?!\s*q=0(?:\.0*)?\s*(?:,|$))|$)/.test(accepted ?? "");
}
