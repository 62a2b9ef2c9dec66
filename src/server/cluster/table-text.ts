// What an entry of a table holds: an object as JSON. A newer server may write others, and a stranger with the same Redis anything.

/** `undefined`: it is no object. Its fields are still to be looked at. */
export function objectIn(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}
