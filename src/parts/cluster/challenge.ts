// Proves on each connection between servers that the caller knows the secret: the called server sends a random
// number, and the proof depends on it. A proof that others read cannot be used on another connection.

import { randomBytes } from 'node:crypto'
import { eventLoop } from '../../event-loop.ts'
import { latin1 } from '../../http/characters.ts'
import { type Arrival, type Route, refusal } from '../../server/contracts/front.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { Cluster } from './cluster.ts'
import { challengeWith, MAX_GREETING_BYTES, PEER_REFUSED, proofIn } from './peer-wire.ts'

/** The time in milliseconds for the proof, which the caller can send at once. */
const ANSWER_MS = 2_000

/**
 * Returns the route for a server that must prove itself. `enter` gets the connection of a server of the cluster;
 * others are refused.
 */
export function provedRoute(
  arrival: Arrival,
  cluster: Cluster,
  enter: (socket: Socket) => SocketHandler,
): Route {
  const hasProof = arrival.head.header('authorization') !== undefined
  if (hasProof || !cluster.mayBePeer(arrival)) return refusal('TOKEN_REFUSED')
  const number = randomBytes(16).toString('base64url')
  const isProof = (proof: string): boolean => cluster.isProof(proof, number)
  // The server may have stopped since, and would not wait for this connection. The caller then uses another server.
  const takeIn = (socket: Socket): SocketHandler | undefined =>
    cluster.isLeaving ? undefined : enter(socket)
  return { kind: 'takeover', takeOver: socket => new Challenge(socket, number, isProof, takeIn) }
}

class Challenge implements SocketHandler {
  readonly #socket: Socket
  readonly #isProof: (proof: string) => boolean
  readonly #enter: (socket: Socket) => SocketHandler | undefined
  readonly #stopTimer: () => void
  #bytes: Uint8Array = new Uint8Array(0)
  /** The handler of the connection's events once the caller has proved itself. */
  #way: SocketHandler | undefined
  #isOver = false

  constructor(
    socket: Socket,
    number: string,
    isProof: (proof: string) => boolean,
    enter: (socket: Socket) => SocketHandler | undefined,
  ) {
    this.#socket = socket
    this.#isProof = isProof
    this.#enter = enter
    this.#stopTimer = eventLoop.after(ANSWER_MS, () => socket.terminate())
    socket.write(challengeWith(number))
  }

  received(bytes: Uint8Array): void {
    if (this.#way !== undefined) return this.#way.received(bytes)
    if (this.#isOver) return
    const answer = Buffer.concat([this.#bytes, bytes])
    this.#bytes = answer
    const end = answer.indexOf('\r\n\r\n')
    if (end < 0 && answer.length < MAX_GREETING_BYTES) return
    this.#stopTimer()
    // A server of the cluster sends nothing after its proof before the reply.
    const isWhole = end + 4 === answer.length
    if (!isWhole || !this.#isProof(proofIn(latin1(answer, 0, answer.length)))) return this.#refuse()
    this.#way = this.#enter(this.#socket)
    if (this.#way !== undefined) return
    this.#isOver = true
    this.#socket.terminate()
  }

  #refuse(): void {
    this.#isOver = true
    this.#socket.write(PEER_REFUSED)
    this.#socket.end()
  }

  drained(): void {
    this.#way?.drained()
  }

  spliceable(): void {
    this.#way?.spliceable?.()
  }

  ended(): void {
    if (this.#way !== undefined) this.#way.ended()
    else this.#socket.terminate()
  }

  closed(error?: Error): void {
    this.#stopTimer()
    this.#way?.closed(error)
  }
}
