// The beginning of a TLS connection: reads its hello (ClientHello), and passes the connection to the owner of the requested name.

import { ByteBuffer } from '../../bytes.ts'
import type { Turns, Waiting } from '../../session/turns.ts'
import type { Endpoints, ServerHandshake, Socket, SocketHandler } from '../../socket.ts'
import {
  ClientHelloReader,
  type HelloVerdict,
  internalErrorAlert,
  MAX_HELLO_BYTES,
  unrecognizedNameAlert,
} from '../../wire/client-hello.ts'
import type { Deadline, Deadlines } from '../limits/deadlines.ts'

/**
 * The time in milliseconds for a refused visitor to read its alert before the connection closes. An earlier RST would
 * destroy the alert.
 */
const LINGER_MS = 2_000

/** The content of a valid hello. `name` is empty when it names no host. */
export interface Hello {
  readonly name: string
  /** The protocols that ALPN offers, in its order. */
  readonly protocols: readonly string[]
}

/**
 * How a connection continues: passed on unchanged, beginning with the hello; decrypted here; or refused with
 * `unrecognized_name`. A promise that rejects refuses it with `internal_error`.
 */
export type Continuation = Decision | Promise<Decision>
type Decision = ((passed: Socket, first: Uint8Array) => SocketHandler) | ServerHandshake | undefined

/** The operations of the front that a connection needs. */
export interface HelloHost {
  readonly deadlines: Deadlines
  /** The time for the hello, from its first byte, in milliseconds. */
  readonly helloTimeoutMs: number
  readonly turns: Turns
  /** Asks for a turn to read the bytes that arrived. Returns `false` if too many connections wait. */
  waits(): boolean
  /** Called when the connection no longer waits for a turn. */
  waited(): void
  read(hello: Hello): Continuation
  /** Called for a connection that is not TLS. Returns an unencrypted response, or `undefined` to close without one. */
  foreign?(first: Uint8Array): Uint8Array | undefined
  /** Called at least once: when the hello was read, or the connection is gone. */
  settled(): void
}

/** Handles a socket until its hello is complete; for a connection that is passed on, until its end. */
export class HelloConnection implements SocketHandler, Socket, Deadline, Waiting {
  readonly remoteAddress: string
  dueTick = 0
  readonly #socket: Socket
  readonly #host: HelloHost
  #reader: ClientHelloReader | undefined = new ClientHelloReader()
  readonly #held: ByteBuffer = new ByteBuffer()
  /** The bytes that wait until the connection has its turn to read. */
  readonly #unread: ByteBuffer = new ByteBuffer()
  #isWaiting = false
  /** Whether the visitor sent FIN while its bytes waited. */
  #hasEnded = false
  #visitor: SocketHandler | undefined
  /** Whether the visitor was sent bytes already. An alert after them would be read as a part of them. */
  #hasAnswered = false
  /** Whether a certificate for the connection is being looked up or ordered. */
  #isSought = false
  #isLeaving = false
  #isClosed = false

  constructor(socket: Socket, host: HelloHost) {
    this.#socket = socket
    this.#host = host
    this.remoteAddress = socket.remoteAddress
    host.deadlines.watch(this)
  }

  /** Drops a connection without a hello: too many wait, its time is over, or the server stops. */
  drop(): void {
    this.#reader = undefined
    this.#isSought = false
    this.#stopWaiting()
    this.#host.settled()
    this.#socket.terminate()
  }

  // ── From the socket ────────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array): void {
    if (this.#visitor !== undefined) return this.#isLeaving ? undefined : this.#visitor.received(bytes)
    if (this.#isSought) return this.#held.add(bytes)
    // After a refusal, bytes that the kernel had read already still arrive.
    if (this.#reader === undefined) return
    if (this.#held.length === 0 && !this.#isWaiting) this.#host.deadlines.arm(this, this.#host.helloTimeoutMs)
    // If more bytes arrive than a hello can have, they are read at once instead of being stored.
    const mayRead = !this.#isWaiting && (bytes.length > MAX_HELLO_BYTES || this.#host.turns.hasTime)
    if (mayRead) this.#read(this.#reader, bytes)
    else this.#wait(bytes)
  }

  /** Called when the connection has its turn: reads the bytes that waited. */
  turn(): void {
    this.#stopWaiting()
    const bytes = this.#unread.take()
    this.#socket.resume()
    if (bytes !== undefined && this.#reader !== undefined) this.#read(this.#reader, bytes)
    if (this.#hasEnded) this.ended()
  }

  #wait(bytes: Uint8Array): void {
    if (!this.#isWaiting) {
      if (!this.#host.waits()) return this.drop()
      this.#isWaiting = true
      this.#socket.pause()
      this.#host.turns.wait(this)
    }
    this.#unread.add(bytes)
  }

  #stopWaiting(): void {
    if (!this.#isWaiting) return
    this.#isWaiting = false
    this.#host.turns.forget(this)
    this.#host.waited()
  }

  #read(reader: ClientHelloReader, bytes: Uint8Array): void {
    const verdict = reader.receive(bytes)
    this.#held.add(bytes)
    if (verdict.kind === 'more') return
    this.#reader = undefined
    this.#host.deadlines.forget(this)
    const first = this.#held.all
    if (verdict.kind === 'foreign') this.#leaveForeigner(first)
    else if (verdict.kind === 'invalid') this.drop()
    else this.#goOn(this.#host.read(helloOf(verdict)), first)
  }

  drained(): void {
    this.#visitor?.drained()
  }

  ended(): void {
    if (this.#isWaiting) this.#hasEnded = true
    else if (this.#reader !== undefined || this.#isSought) this.drop()
    else if (!this.#isLeaving) this.#visitor?.ended()
  }

  closed(error?: Error): void {
    this.#isClosed = true
    this.#isSought = false
    this.#reader = undefined
    this.#stopWaiting()
    this.#host.deadlines.forget(this)
    this.#host.settled()
    this.#visitor?.closed(error)
  }

  expired(): void {
    if (this.#isLeaving) this.#socket.terminate()
    else this.drop()
  }

  #goOn(continuation: Continuation, first: Uint8Array): void {
    if (continuation instanceof Promise) return this.#seek(continuation)
    if (typeof continuation !== 'function') return this.#secure(continuation, first)
    this.#host.settled()
    this.#visitor = continuation(this, first)
    this.#held.clear()
    // The connection ended during the search for its owner.
    if (this.#hasEnded) this.#visitor.ended()
  }

  /**
   * Waits for the decision about the connection. Bytes that arrive despite the pause, such as early data, belong to
   * the handshake.
   */
  #seek(found: Promise<Decision>): void {
    this.#host.settled()
    this.#isSought = true
    this.#socket.pause()
    const end = (next: () => void) => {
      if (!this.#isSought) return
      this.#isSought = false
      next()
    }
    found.then(
      decision =>
        end(() => {
          if (typeof decision === 'function') this.#socket.resume()
          this.#goOn(decision, this.#held.all)
        }),
      () => end(() => this.#leave(internalErrorAlert())),
    )
  }

  #secure(handshake: ServerHandshake | undefined, first: Uint8Array): void {
    if (handshake === undefined || this.#socket.secure === undefined)
      return this.#leave(unrecognizedNameAlert())
    // A visitor that sent FIN can complete no handshake.
    if (this.#hasEnded) return this.drop()
    this.#host.settled()
    this.#socket.secure(first, handshake)
    this.#held.clear()
  }

  #leaveForeigner(first: Uint8Array): void {
    const answer = this.#host.foreign?.(first)
    if (answer === undefined) this.drop()
    else this.#leave(answer)
  }

  /** Sends an alert that gives the reason, and closes. */
  #leave(lastWords: Uint8Array): void {
    this.#host.settled()
    this.#isLeaving = true
    this.#socket.write(lastWords)
    this.#socket.end()
    this.#socket.resume()
    this.#host.deadlines.watch(this)
    this.#host.deadlines.arm(this, LINGER_MS)
  }

  // ── To the socket ──────────────────────────────────────────────────────────────────────────────────────────

  write(bytes: Uint8Array, start?: number, end?: number): number {
    this.#hasAnswered = true
    return this.#socket.write(bytes, start, end)
  }

  end(): void {
    this.#socket.end()
  }

  /** Closes the connection; a visitor that waits for its handshake gets an alert first. */
  terminate(): void {
    if (this.#hasAnswered || this.#isClosed || this.#isLeaving) this.#socket.terminate()
    else this.#leave(internalErrorAlert())
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  keepAlive(idleMs: number): void {
    this.#socket.keepAlive?.(idleMs)
  }

  endpoints(): Endpoints | undefined {
    return this.#socket.endpoints()
  }
}

function helloOf(verdict: Extract<HelloVerdict, { readonly protocols: readonly string[] }>): Hello {
  const { protocols } = verdict
  return { name: verdict.kind === 'name' ? verdict.name : '', protocols }
}
