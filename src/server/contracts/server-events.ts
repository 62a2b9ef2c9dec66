// The events of a server, as its own parts emit them.

import type { TunnelServerEvents } from '../settings/options.ts'

export interface ServerEvents {
  emit<Name extends keyof TunnelServerEvents>(event: Name, payload: TunnelServerEvents[Name]): void
  /** Whether the event has listeners. */
  isHeard(event: keyof TunnelServerEvents): boolean
  /** A request, a connection or a visitor is gone: `stop()` may be waiting for that. */
  somethingEnded(): void
}
