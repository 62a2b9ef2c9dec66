// The events of a server, as its own code emits them.

import type { TunnelServerEvents } from '../settings/options.ts'

export interface ServerEvents {
  emit<Name extends keyof TunnelServerEvents>(event: Name, payload: TunnelServerEvents[Name]): void
}
