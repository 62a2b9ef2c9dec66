// The listening sockets that a server was given, and which of its listeners has which.

import { optionInvalid } from '../../errors.ts'
import { closeInherited, type InheritedSocket, inheritedSocket } from '../../sockets/inherited.ts'
import type { Deadline, Deadlines } from '../limits/deadlines.ts'
import type { ServerSettings } from '../settings/settings.ts'

/** The parts of the server that it needs. */
interface InheritanceContext {
  readonly settings: Pick<ServerSettings, 'inherited' | 'port' | 'tlsPort' | 'httpPort' | 'ports'>
  readonly limits: { readonly leaseMs: number }
  readonly deadlines: Deadlines
  failed(error: Error): void
}

/** Each is taken once: by the listener that wants its port, and the first that no other wants by the server's own. */
export class Inheritance implements Deadline {
  dueTick = 0
  readonly #context: InheritanceContext
  readonly #left: InheritedSocket[]
  /** Whether only this machine reaches them. */
  readonly areLocal: boolean

  /** Throws `OPTION_INVALID`. */
  constructor(context: InheritanceContext) {
    this.#context = context
    this.#left = context.settings.inherited.map(descriptor => inheritedSocket(descriptor))
    this.areLocal = this.#left.every(({ isLocal }) => isLocal)
  }

  /** The socket of the server's own port. */
  takeMain(): InheritedSocket | undefined {
    const { port, tlsPort, httpPort, ports } = this.#context.settings
    const isOfAnother = (one: InheritedSocket) =>
      (tlsPort !== port && one.port === tlsPort) || one.port === httpPort || ports.tcp.includes(one.port)
    const exact = this.#left.find(one => one.port === port)
    return this.#take(exact ?? this.#left.find(one => !isOfAnother(one)))
  }

  /** The socket of this port; `undefined`: listen on it. */
  take(port: number): InheritedSocket | undefined {
    return this.#take(this.#left.find(one => one.port === port))
  }

  /**
   * The listeners of the server are open. The rest is kept for TCP tunnels whose clients are reconnecting here, for as long as
   * a lease; visitors wait there. The rest is closed and reported.
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
