// A server replaces itself: the program is started again with the sockets that listen, and this one leaves once that one serves.

import { TunnelError } from '../errors.ts'

/** A program that does not serve by then is ended. */
const START_TIMEOUT_MS = 30_000
/** Says to a program that it is the new one. */
const VARIABLE = 'LOCALTUNNELS_UPGRADE'

type Environment = Record<string, string | undefined>

/** What the new program says, once. */
type Word = { readonly pid: number } | { readonly failed: string }

/** As it was at the start: an installed file may be replaced meanwhile, and its old name be gone. */
const program = process.execPath.replace(/ \(deleted\)$/, '')

/**
 * Starts it with these descriptors, as systemd would pass them. Resolves with its process number once it serves; rejects with
 * `UPGRADE_FAILED` and why it does not, and then it is gone.
 */
export async function startSuccessor(
  descriptors: readonly number[],
  environment: Environment,
  stop: AbortSignal,
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const failed = (why: string, cause?: unknown) =>
    reject(new TunnelError('UPGRADE_FAILED', `The new program ${why}. The old one goes on.`, { cause }))
  let isOver = false
  try {
    const child = Bun.spawn({
      // The number of a process is known in it only.
      cmd: ['/bin/sh', '-c', 'LISTEN_PID=$$ exec "$@"', 'sh', ...commandLine()],
      env: { ...environment, [VARIABLE]: '1', LISTEN_FDS: String(descriptors.length) },
      stdio: ['inherit', 'inherit', 'inherit', ...descriptors],
      ipc: message => {
        if (isOver) return
        const word: Partial<Word> = typeof message === 'object' && message !== null ? message : {}
        if ('pid' in word) resolve(child.pid)
        else if ('failed' in word) failed(`did not start: ${String(word.failed)}`)
      },
    })
    const timer = setTimeout(
      () => failed(`did not serve within ${START_TIMEOUT_MS / 1_000} s`),
      START_TIMEOUT_MS,
    )
    const stopped = () => failed('is not wanted any more')
    stop.addEventListener('abort', stopped, { once: true })
    void child.exited.then(code => failed(`ended with exit code ${code}; what it printed says why`))
    try {
      return await promise
    } catch (error) {
      child.kill('SIGKILL')
      throw error
    } finally {
      isOver = true
      clearTimeout(timer)
      stop.removeEventListener('abort', stopped)
      child.disconnect()
      child.unref()
    }
  } catch (cause) {
    if (cause instanceof TunnelError) throw cause
    throw new TunnelError('UPGRADE_FAILED', undefined, { cause })
  }
}

/** This program again, with what it was given. */
function commandLine(): readonly string[] {
  const [, script = '', ...given] = process.argv
  return Bun.isStandaloneExecutable ? [program, ...given] : [program, ...process.execArgv, script, ...given]
}

/** What the new program tells the old one. */
export interface Succession {
  serves(): void
  failed(error: unknown): void
}

/** `undefined`: this program replaces none. Takes the variable out of `environment`. */
export function successionOf(environment: Environment): Succession | undefined {
  if (environment[VARIABLE] === undefined || process.send === undefined) return undefined
  delete environment[VARIABLE]
  const say = (word: Word) => {
    // The old program may be gone, which is nothing to fail for.
    try {
      process.send?.(word)
    } catch {}
  }
  return {
    serves: () => say({ pid: process.pid }),
    failed: error => say({ failed: error instanceof Error ? error.message : String(error) }),
  }
}
