// Replaces a server: starts the program again with the listening sockets, and ends this one once the new one serves.

import { ERRORS, type ErrorCode, messageOf, TunnelError } from '../../errors.ts'
import type { TotalsEvent } from '../output.ts'

/** The time in milliseconds after which a new program that does not serve is ended. */
const START_TIMEOUT_MS = 30_000
/** The variable that marks a new program. */
const VARIABLE = 'LOCALTUNNELS_UPGRADE'

type Environment = Record<string, string | undefined>

/** The only message of the new program. */
type Word = { readonly pid: number } | { readonly failed: string; readonly code: string }

/** The path of the program at the start. The installed file may be replaced, and its old name be gone. */
const program = process.execPath.replace(/ \(deleted\)$/, '')

/** A program that was started, with its results. */
export interface Started {
  readonly process: Bun.Subprocess
  /** Resolves with its process number, once it serves. Rejects with the reason if it does not; then it has ended. */
  readonly serving: Promise<number>
  /** Resolves when it has no open requests and waits for the others. */
  readonly idle: Promise<void>
  /** Resolves with the totals that a worker sends at its end. `undefined` if it ended without them. */
  readonly totals: Promise<TotalsEvent | undefined>
  readonly hasServed: () => boolean
  readonly exited: Promise<number>
}

/** Starts this program again with these descriptors, as systemd would pass them. */
export function startProgram(descriptors: readonly number[], environment: Environment): Started {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const failed = (code: ErrorCode, why: string) => reject(new TunnelError(code, why))
  const idle = Promise.withResolvers<void>()
  const totals = Promise.withResolvers<TotalsEvent | undefined>()
  let hasServed = false
  const child = Bun.spawn({
    // Only the new process knows its own number.
    cmd: ['/bin/sh', '-c', 'LISTEN_PID=$$ exec "$@"', 'sh', ...commandLine()],
    env: { ...environment, [VARIABLE]: '1', LISTEN_FDS: String(descriptors.length) },
    stdio: ['inherit', 'inherit', 'inherit', ...descriptors],
    ipc: message => {
      const word: Partial<Record<string, unknown>> =
        typeof message === 'object' && message !== null ? { ...message } : {}
      if (typeof word.failed === 'string') return failed(codeOf(word.code), word.failed)
      if (word.idle === true) idle.resolve()
      // The same program wrote it.
      if (word.totals !== undefined) totals.resolve(word.totals as TotalsEvent)
      if (word.pid === undefined) return
      hasServed = true
      resolve(child.pid)
    },
    onDisconnect: () => totals.resolve(undefined),
  })
  const timer = setTimeout(
    () => failed('UPGRADE_FAILED', `it did not serve within ${START_TIMEOUT_MS / 1_000} s.`),
    START_TIMEOUT_MS,
  )
  void child.exited.then(code =>
    failed('UPGRADE_FAILED', `it ended with exit code ${code}; what it printed says why.`),
  )
  const serving = promise.finally(() => {
    clearTimeout(timer)
    if (!hasServed) child.kill('SIGKILL')
  })
  const ends = { idle: idle.promise, totals: totals.promise, exited: child.exited }
  return { process: child, serving, hasServed: () => hasServed, ...ends }
}

/**
 * Starts the program that replaces this one. Resolves with its process number once it serves. Rejects with
 * `UPGRADE_FAILED` and the reason if it does not; then it has ended.
 */
export async function startSuccessor(
  descriptors: readonly number[],
  environment: Environment,
  stop: AbortSignal,
): Promise<number> {
  try {
    const started = startProgram(descriptors, environment)
    const stopped = () => started.process.kill('SIGKILL')
    stop.addEventListener('abort', stopped, { once: true })
    const pid = await started.serving
    stop.removeEventListener('abort', stopped)
    started.process.disconnect()
    started.process.unref()
    return pid
  } catch (cause) {
    throw new TunnelError('UPGRADE_FAILED', `The new program did not start: ${messageOf(cause)}`, { cause })
  }
}

function codeOf(code: unknown): ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERRORS, code) ? (code as ErrorCode) : 'INTERNAL' // a key of ERRORS
}

function commandLine(): readonly string[] {
  const [, script = '', ...given] = process.argv
  return Bun.isStandaloneExecutable ? [program, ...given] : [program, ...process.execArgv, script, ...given]
}

export interface Succession {
  serves(): void
  failed(error: unknown): void
}

/** Returns the program that waits for this one. `undefined` if none does. Removes the variable from `environment`. */
export function successionOf(environment: Environment): Succession | undefined {
  if (environment[VARIABLE] === undefined || process.send === undefined) return undefined
  delete environment[VARIABLE]
  const say = (word: Word) => {
    // The other program may be gone, which is not an error.
    try {
      process.send?.(word)
    } catch {}
  }
  return {
    serves: () => say({ pid: process.pid }),
    failed: error =>
      say({
        failed: messageOf(error),
        code: error instanceof TunnelError ? error.code : 'INTERNAL',
      }),
  }
}
