// Two connections of the house joined one way, with far sides that know which bytes must come: for tests of splicing.

import { readdirSync } from 'node:fs'
import type { Socket as PeerSocket } from 'node:net'
import { SendQueue } from '../../src/bytes.ts'
import type { Socket, SocketHandler, Splice } from '../../src/socket.ts'
import { dialBun, listenBun } from '../../src/sockets/bun.ts'
import { peerClient, peerServer } from './peer.ts'
import { Random } from './random.ts'
import { within } from './within.ts'

/** No multiple of any buffer size: what is lost, repeated or out of its place shows. */
const PERIOD_BYTES = 1_000_003
const PATTERN = new Random(7).bytes(PERIOD_BYTES)

/** Up to `most` bytes of the pattern from `at` on. */
export function patternAt(at: number, most: number): Uint8Array {
  const start = at % PERIOD_BYTES
  return PATTERN.subarray(start, Math.min(start + most, PERIOD_BYTES))
}

/** Where bytes that should be those at `from` begin to differ, and where in the pattern they are instead. */
function differenceOf(bytes: Buffer, from: number): string {
  let at = 0
  while (bytes[at] === PATTERN[(from + at) % PERIOD_BYTES]) at++
  const found = Buffer.from(PATTERN.buffer).indexOf(bytes.subarray(at, at + 16))
  return `at ${from + at}: not those at ${(from + at) % PERIOD_BYTES} of the pattern, but those at ${found}`
}

/** Descriptors that this process has open. */
export const openDescriptors = (): number => readdirSync('/proc/self/fd').length

/** Writes the pattern as fast as it is taken, then what comes behind it, or FIN. */
export class Source {
  sentBytes = 0
  readonly #socket: PeerSocket
  readonly #totalBytes: number

  readonly #behind: string | undefined

  constructor(socket: PeerSocket, totalBytes: number, behind?: string) {
    this.#behind = behind
    this.#socket = socket
    this.#totalBytes = totalBytes
    socket.on('drain', () => this.#pump())
    this.#pump()
  }

  #pump(): void {
    while (this.sentBytes < this.#totalBytes) {
      const piece = patternAt(this.sentBytes, Math.min(262_144, this.#totalBytes - this.sentBytes))
      this.sentBytes += piece.length
      if (!this.#socket.write(piece)) return
    }
    this.#socket.removeAllListeners('drain')
    if (this.#behind === undefined) this.#socket.end()
    else if (this.#behind !== '') this.#socket.write(this.#behind)
  }
}

/** Compares what comes with the pattern. */
export class Sink {
  receivedBytes = 0
  /** How it ended: `end`, or the code of an error. */
  outcome: string | undefined
  readonly #waiting = new Set<() => void>()

  constructor(socket: PeerSocket) {
    socket.on('data', (bytes: Buffer) => {
      for (let at = 0; at < bytes.length; ) {
        const expected = patternAt(this.receivedBytes, bytes.length - at)
        if (Buffer.compare(bytes.subarray(at, at + expected.length), expected) !== 0) {
          this.#over(`wrong bytes ${differenceOf(bytes.subarray(at), this.receivedBytes)}`)
          return socket.destroy()
        }
        at += expected.length
        this.receivedBytes += expected.length
      }
      for (const wake of this.#waiting) wake()
    })
    socket.on('end', () => this.#over('end'))
    socket.on('error', error => this.#over('code' in error ? String(error.code) : error.message))
    socket.on('close', () => this.#over('closed'))
    socket.resume()
  }

  #over(outcome: string): void {
    this.outcome ??= outcome
    for (const wake of this.#waiting) wake()
  }

  async until(condition: () => boolean, what: string): Promise<void> {
    while (!condition()) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#waiting.add(resolve)
      await within(promise, what)
      this.#waiting.delete(resolve)
    }
  }

  async over(): Promise<string> {
    await this.until(() => this.outcome !== undefined, `the end, after ${this.receivedBytes} bytes`)
    return this.outcome ?? ''
  }
}

/** Moves what comes on `from` to `to`, in the kernel whenever `limitBytes` says how much. */
export class Relay implements AsyncDisposable {
  /** What happened, in order. */
  readonly events: string[] = []
  movedBytes = 0
  receivedBytes = 0
  splice: Splice | undefined
  from!: Socket // set by `relay`
  to!: Socket // likewise
  readonly #unsent = new SendQueue()
  readonly #limitBytes: () => number | undefined
  #hasEnded = false
  #began: (() => void) | undefined
  #close: () => void = () => {}

  constructor(limitBytes: () => number | undefined) {
    this.#limitBytes = limitBytes
  }

  readonly fromHandler: SocketHandler = {
    received: bytes => {
      this.events.push('received')
      this.receivedBytes += bytes.length
      if (this.#unsent.send(this.to, bytes) < bytes.length) this.from.pause()
    },
    drained() {},
    spliceable: () => {
      const limitBytes = this.#limitBytes()
      if (limitBytes === undefined || !this.#unsent.isEmpty) return
      this.splice = this.from.spliceTo?.(this.to, limitBytes, movedBytes => {
        this.events.push('done')
        this.movedBytes += movedBytes
        this.splice = undefined
      })
      this.events.push(this.splice === undefined ? 'refused' : 'spliced')
      if (this.splice !== undefined) this.#began?.()
    },
    ended: () => {
      this.events.push('ended')
      this.#hasEnded = true
      if (this.#unsent.isEmpty) this.to.end()
    },
    closed: error => {
      this.events.push(error === undefined ? 'from closed' : 'from failed')
      if (error !== undefined) this.to.terminate()
    },
  }

  readonly toHandler: SocketHandler = {
    received() {},
    drained: () => {
      this.#unsent.flush(this.to)
      if (!this.#unsent.isEmpty) return
      if (this.#hasEnded) this.to.end()
      else this.from.resume()
    },
    ended: () => this.from.end(),
    closed: error => {
      this.events.push(error === undefined ? 'to closed' : 'to failed')
      if (error !== undefined) this.from.terminate()
    },
  }

  /** Waits until the kernel moves bytes. */
  async spliced(): Promise<Splice> {
    while (this.splice === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#began = resolve
      await within(promise, `a splice, after ${this.events.join(' ')}`)
    }
    return this.splice
  }

  onClose(close: () => void): void {
    this.#close = close
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.from.terminate()
    this.to.terminate()
    this.#close()
  }
}

/** `far` sends to the relay, `sink` gets what it passes on. */
export interface Road extends AsyncDisposable {
  readonly relay: Relay
  readonly source: PeerSocket
  readonly drain: PeerSocket
}

export async function road(
  limitBytes: () => number | undefined = () => Number.POSITIVE_INFINITY,
): Promise<Road> {
  const relay = new Relay(limitBytes)
  const accepted = Promise.withResolvers<void>()
  const listening = listenBun({
    hostname: '127.0.0.1',
    accept(socket) {
      relay.from = socket
      // Nothing is read before there is somewhere to write it.
      socket.pause()
      accepted.resolve()
      return relay.fromHandler
    },
  })
  const peer = await peerServer({})
  const source = await peerClient(listening.port, false)
  await within(accepted.promise, 'accept')
  relay.to = await dialBun({ host: '127.0.0.1', port: peer.port }, relay.toHandler)
  const drain = await peer.accepted()
  relay.from.resume()
  return {
    relay,
    source,
    drain,
    async [Symbol.asyncDispose]() {
      await relay[Symbol.asyncDispose]()
      source.destroy()
      peer.close()
      listening.stop(true)
    },
  }
}
