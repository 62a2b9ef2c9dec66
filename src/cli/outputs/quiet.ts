// An output without lines that visitors or clients cause.

import type { CliEvent, OfferedKey, Output } from '../output.ts'

const LEFT_OUT: ReadonlySet<CliEvent['type']> = new Set([
  'request',
  'upgraded',
  'response',
  'visitorConnected',
  'visitorDisconnected',
  'connection',
  'disconnection',
  'suppressed',
] as const)

export class QuietOutput implements Output {
  readonly inner: Output

  constructor(inner: Output) {
    this.inner = inner
  }

  event(event: CliEvent): void {
    if (!LEFT_OUT.has(event.type)) this.inner.event(event)
  }

  block(text: string): void {
    this.inner.block(text)
  }

  offer(keys: readonly OfferedKey[]): void {
    this.inner.offer?.(keys)
  }

  close(): void {
    this.inner.close()
  }
}
