// A promise with the functions that settle it. Node 20 has no Promise.withResolvers.

export interface Deferred<Value> {
  readonly promise: Promise<Value>
  readonly resolve: (value: Value) => void
  readonly reject: (reason: unknown) => void
}

export function deferred<Value = void>(): Deferred<Value> {
  let resolve!: (value: Value) => void // both are set before the constructor returns
  let reject!: (reason: unknown) => void
  const promise = new Promise<Value>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}
