// An output that also tells a supervisor such as systemd when the tunnels of this run are public, and when the run ends.

import { notify } from '../notify.ts'
import type { CliEvent, OfferedKey, Output } from '../output.ts'
import type { Run } from '../run.ts'

/** Returns the same run if there is no supervisor. Not for a server, which another process may replace. */
export function supervised(run: Run): Run {
  return run.environment.NOTIFY_SOCKET === undefined ? run : { ...run, output: new SupervisedOutput(run) }
}

class SupervisedOutput implements Output {
  readonly #inner: Output
  readonly #environment: Run['environment']

  constructor({ output, environment }: Run) {
    this.#inner = output
    this.#environment = environment
  }

  event(event: CliEvent): void {
    const state = stateOf(event)
    // A line break would begin another variable.
    if (state !== undefined) notify(state.map(line => line.replace(/\s/g, ' ')).join('\n'), this.#environment)
    this.#inner.event(event)
  }

  block(text: string): void {
    this.#inner.block(text)
  }

  offer(keys: readonly OfferedKey[]): void {
    this.#inner.offer?.(keys)
  }

  close(): void {
    this.#inner.close()
  }
}

/** Returns the variables of sd_notify(3) for this event. */
function stateOf(event: CliEvent): readonly string[] | undefined {
  switch (event.type) {
    case 'ready':
      return ['READY=1', `STATUS=${event.url}`]
    case 'configured':
      return ['READY=1', `STATUS=${event.services} ${event.services === 1 ? 'service' : 'services'}`]
    case 'connected':
      return [`STATUS=${event.url}`]
    case 'disconnected':
      return [`STATUS=Not connected: ${event.code}`]
    case 'draining':
      return ['STOPPING=1']
    default:
      return undefined
  }
}
