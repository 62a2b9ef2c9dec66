// A tap on a connection to an origin: its bytes pass as before, and a flow of the capture gets copies. It delays
// nothing, because the capture works later.

import type { Origin } from '../../client/origins/origin.ts'
import { TunnelError } from '../../errors.ts'
import type { Endpoints, LentWays, Loan, Socket, SocketHandler, Splice, SpliceDone } from '../../socket.ts'
import { type Flow, FROM_APP, TO_APP } from './flow.ts'

export async function connectTapped(origin: Origin, handler: SocketHandler, flow: Flow): Promise<Socket> {
  const tap = new TappedSocket(handler, flow)
  try {
    tap.inner = await origin.connect(tap.handler)
  } catch (error) {
    flow.closed(error instanceof Error ? error : new TunnelError('ORIGIN_UNREACHABLE'), false)
    throw error
  }
  return tap
}

class TappedSocket implements Socket {
  readonly handler: SocketHandler
  readonly #flow: Flow
  /** The socket, set before anything but events uses the connection. */
  inner!: Socket
  #isCut = false

  constructor(handler: SocketHandler, flow: Flow) {
    this.#flow = flow
    this.handler = {
      received: bytes => {
        flow.received(bytes)
        handler.received(bytes)
      },
      drained: () => handler.drained(),
      ended: () => {
        flow.ended(FROM_APP)
        handler.ended()
      },
      closed: error => {
        flow.closed(error, this.#isCut)
        handler.closed(error)
      },
      // Left out if the handler has none, which means that nothing is spliced.
      ...(handler.spliceable !== undefined && { spliceable: () => handler.spliceable?.() }),
    }
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    const flow = this.#flow
    if (!flow.wants(bytes, start, end)) return this.inner.write(bytes, start, end)
    const piece = flow.reserve()
    const taken = this.inner.write(bytes, start, end)
    flow.sent(piece, bytes, start, start + taken)
    return taken
  }

  end(): void {
    this.#flow.ended(TO_APP)
    this.inner.end()
  }

  terminate(): void {
    this.#isCut = true
    this.inner.terminate()
  }

  letGo(): void {
    this.#isCut = true
    if (this.inner.letGo === undefined) this.inner.terminate()
    else this.inner.letGo()
  }

  pause(): void {
    this.inner.pause()
  }

  resume(): void {
    this.inner.resume()
  }

  keepAlive(idleMs: number): void {
    this.inner.keepAlive?.(idleMs)
  }

  get remoteAddress(): string {
    return this.inner.remoteAddress
  }

  endpoints(): Endpoints | undefined {
    return this.inner.endpoints()
  }

  // ── Without the main thread ────────────────────────────────────────────────────────────────────────────────

  requestSplice(): boolean {
    return this.inner.requestSplice?.() ?? false
  }

  spliceTo(to: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    const limit = Math.min(limitBytes, this.#flow.unseenBytes(FROM_APP))
    if (limit <= 0) return undefined
    return this.inner.spliceTo?.(to, limit, movedBytes => {
      this.#flow.passed(FROM_APP, movedBytes)
      done(movedBytes)
    })
  }

  spliceFrom(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    const limit = Math.min(limitBytes, this.#flow.unseenBytes(TO_APP))
    if (limit <= 0) return undefined
    return from.spliceTo?.(this.inner, limit, movedBytes => {
      this.#flow.passed(TO_APP, movedBytes)
      done(movedBytes)
    })
  }

  get isLendable(): boolean {
    return this.#flow.isPassing && this.inner.isLendable === true
  }

  lend(ways: LentWays, stop: () => void): Loan | undefined {
    const loan = this.#flow.isPassing ? this.inner.lend?.(ways, stop) : undefined
    if (loan !== undefined) this.#flow.lent(stop)
    return loan
  }
}
