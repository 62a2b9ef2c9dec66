// Watches whether anything listens where the app should be: while nothing does, a TCP connection a second.

import { stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { deferred } from '../deferred.ts'
import type { Target } from './target.ts'

const PAUSE_MS = 1_000
const DIAL_TIMEOUT_MS = 1_000

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

  /** Looks now, and again and again as long as nothing listens. An app that is up is left in peace. */
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
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }
}

/** Whether one of the addresses accepts a connection, or the folder is there. Never rejects. */
export async function isListening(dial: Target['dial']): Promise<boolean> {
  if ('folder' in dial) {
    const stats = await stat(dial.folder).catch(() => undefined)
    return stats?.isDirectory() ?? false
  }
  if ('unix' in dial) return accepts({ path: dial.unix })
  const answers = await Promise.all(dial.hosts.map(host => accepts({ host, port: dial.port })))
  return answers.includes(true)
}

export function accepts(
  address: { readonly path: string } | { readonly host: string; readonly port: number },
): Promise<boolean> {
  const { promise, resolve } = deferred<boolean>()
  const socket = connect(address)
  socket.setTimeout(DIAL_TIMEOUT_MS)
  socket.once('connect', () => resolve(true))
  socket.once('timeout', () => resolve(false))
  socket.once('error', () => resolve(false))
  return promise.finally(() => socket.destroy())
}
