// The listening sockets that a server inherited, and the choice of a listener for each.

import { optionInvalid } from '../../errors.ts'
import { closeInherited, type InheritedSocket, inheritedSocket } from '../../sockets/inherited.ts'
import type { Deadline, Deadlines } from '../limits/deadlines.ts'
import type { ServerSettings } from '../settings/settings.ts'

/** The server members that it uses. */
interface InheritanceContext {
  readonly settings: Pick<ServerSettings, 'inherited' | 'port' | 'tlsPort' | 'httpPort' | 'ports'>
  readonly limits: { readonly leaseMs: number }
  readonly deadlines: Deadlines
  failed(error: Error): void
}

/**
 * Gives each socket once: to the listener with its port. The first socket that no other listener wants is for the
 * server's own port.
 */
export class Inheritance implements Deadline {
  dueTick = 0
  readonly #context: InheritanceContext
  readonly #left: InheritedSocket[]
  /** Whether only this machine can reach the sockets. */
  readonly areLocal: boolean

  /** Makes the set. Throws `OPTION_INVALID` for a socket that does not listen. */
  constructor(context: InheritanceContext) {
    this.#context = context
    this.#left = context.settings.inherited.map(descriptor => inheritedSocket(descriptor))
    this.areLocal = this.#left.every(({ isLocal }) => isLocal)
  }

  /** Takes the socket for the server's own port. */
  takeMain(): InheritedSocket | undefined {
    const { port, tlsPort, httpPort, ports } = this.#context.settings
    const isOfAnother = (one: InheritedSocket) =>
      (tlsPort !== port && one.port === tlsPort) || one.port === httpPort || ports.tcp.includes(one.port)
    const exact = this.#left.find(one => one.port === port)
    return this.#take(exact ?? this.#left.find(one => !isOfAnother(one)))
  }

  /** Takes the socket of this port. `undefined` if there is none, so listen yourself. */
  take(port: number): InheritedSocket | undefined {
    return this.#take(this.#left.find(one => one.port === port))
  }

  /**
   * Called when the listeners of the server are open. Sockets of TCP tunnel ports are kept for a lease, for tunnels
   * whose clients are reconnecting; their visitors wait. All others are closed and reported.
   */
  opened(): void {
    const { settings, deadlines, limits } = this.#context
    for (const one of [...this.#left]) {
      if (settings.ports.tcp.includes(one.port)) continue
      this.#take(one)
      closeInherited(one)
      this.#context.failed(
        optionInvalid(`No listener of this server is for port ${one.port}. Pass one socket for each port.`),
      )
    }
    if (this.#left.length === 0) return
    deadlines.watch(this)
    deadlines.arm(this, limits.leaseMs)
  }

  expired(): void {
    this.close()
  }

  close(): void {
    this.#context.deadlines.forget(this)
    for (const one of this.#left.splice(0)) closeInherited(one)
  }

  #take(one: InheritedSocket | undefined): InheritedSocket | undefined {
    if (one !== undefined) this.#left.splice(this.#left.indexOf(one), 1)
    return one
  }
}
