// Why a promise was rejected.

/** Its reason; throws when it is fulfilled. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  const value = await promise.then(
    fulfilled => ({ fulfilled }),
    (reason: unknown) => ({ reason }),
  )
  if ('reason' in value) return value.reason
  throw new Error(`fulfilled with ${Bun.inspect(value.fulfilled)}`)
}
