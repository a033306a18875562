/**
 * Remembers what was made of an object for as long as the object lives. For what is asked of one object again and
 * again, and takes longer the larger it is; the object must not change after the first time.
 */
export function oncePer<Key extends object, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const made = new WeakMap<Key, { readonly value: Value }>();
  return (key) => {
    let known = made.get(key);
    if (known === undefined) {
      known = { value: make(key) };
      made.set(key, known);
    }
    return known.value;
  };
}
