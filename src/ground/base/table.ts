/**
 * What is looked up by a text that somebody else wrote. A plain object would also find what every object has, such as
 * `constructor` or `__proto__`; this finds its own rows and nothing else.
 */
export function table<Row>(rows: Readonly<Record<string, Row>>): Readonly<Record<string, Row>> {
  return Object.freeze(Object.assign(Object.create(null) as Record<string, Row>, rows));
}
