// Watches whether the app listens. While it does not, a connection is tried once a second. While it does, only the
// system's tables are read, if there are any.

import { stat } from 'node:fs/promises'
import { deferred } from '../../deferred.ts'
import type { Address, SocketHandler } from '../../socket.ts'
import { dial } from '../../sockets/dial.ts'
import type { Target } from '../settings/target.ts'
import { listensHere } from './listening-ports.ts'

const PAUSE_MS = 1_000
/** The pause in milliseconds between checks of a listening app. */
const UP_PAUSE_MS = 2_000
const DIAL_TIMEOUT_MS = 1_000
/** The time in milliseconds for the app to end its side of the check's connection. */
const END_TIMEOUT_MS = 1_000

export class OriginWatch {
  readonly #target: Target
  readonly #changed: (isUp: boolean) => void
  #isUp: boolean | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #isChecking = false
  #isStopped = false

  constructor(target: Target, changed: (isUp: boolean) => void) {
    this.#target = target
    this.#changed = changed
  }

  /** Checks now, and then regularly. */
  async check(): Promise<void> {
    if (this.#isChecking || this.#isStopped) return
    this.#isChecking = true
    clearTimeout(this.#timer)
    const isUp = await isListening(this.#target.dial)
    this.#isChecking = false
    if (this.#isStopped) return
    if (isUp !== this.#isUp) this.#changed(isUp)
    this.#isUp = isUp
    if (!isUp) this.#timer = setTimeout(() => void this.check(), PAUSE_MS)
    else if (isSeen(this.#target.dial)) this.#timer = setTimeout(() => this.#look(), UP_PAUSE_MS)
  }

  #look(): void {
    if (isSeen(this.#target.dial)) this.#timer = setTimeout(() => this.#look(), UP_PAUSE_MS)
    else void this.check()
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }
}

/** Whether the system reports that the app listens. */
function isSeen(where: Target['dial']): boolean {
  return 'port' in where && listensHere(where)
}

/** Whether the app accepts a connection, or the folder exists. Never rejects. */
export async function isListening(where: Target['dial']): Promise<boolean> {
  if (!('folder' in where)) return accepts(where)
  const stats = await stat(where.folder).catch(() => undefined)
  return stats?.isDirectory() ?? false
}

/** Whether the address accepts a connection, dialled in the same way as requests, so that both agree. */
export async function accepts(address: Address): Promise<boolean> {
  if (listensHere(address)) return true
  const { promise: tooLate, resolve } = deferred<undefined>()
  const dialling = new AbortController()
  const timer = setTimeout(resolve, DIAL_TIMEOUT_MS, undefined)
  const dialled = dial(address, DEAF, dialling.signal).catch(() => undefined)
  // Also closes a connection that opens later. With FIN, because a reset is an error for the app, which may end because of it.
  void dialled.then(socket => {
    if (socket === undefined) return
    socket.end()
    setTimeout(() => socket.terminate(), END_TIMEOUT_MS).unref()
  })
  const socket = await Promise.race([dialled, tooLate])
  clearTimeout(timer)
  dialling.abort()
  return socket !== undefined
}

/** Ignores all events of a connection. */
export const DEAF: SocketHandler = { received() {}, drained() {}, ended() {}, closed() {} }
