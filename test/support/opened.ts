// What the tests of a file open is closed after each of them: the last first, as each stands on those before it.

import { afterEach } from 'bun:test'

export interface Opened {
  open<One extends AsyncDisposable>(this: void, one: One): One
  /** What is to be done after the test. */
  defer(this: void, ...ends: readonly (() => unknown)[]): void
}

export function closedAfterEach(): Opened {
  let stack = new AsyncDisposableStack()
  afterEach(() => {
    const ended = stack
    stack = new AsyncDisposableStack()
    return ended.disposeAsync()
  })
  return {
    open: one => stack.use(one),
    defer(...ends) {
      for (const end of ends) stack.defer(async () => void (await end()))
    },
  }
}
