// Runs the real bin as a process, in a pipe or on a real terminal.

import { join } from 'node:path'

export const BIN: string = join(import.meta.dir, '../../bin/localtunnels.ts')
/** Failure only: nothing waits for it when things go well. */
const DEADLINE_MS = 20_000

/** Nothing of the developer's own environment reaches the bin. */
function environment(more: Readonly<Record<string, string>>): Record<string, string> {
  const { PATH = '', HOME = '', TMPDIR = '/tmp' } = process.env
  // No logins of the developer either.
  const XDG_CONFIG_HOME = '/nowhere/localtunnels-tests'
  // Nothing is kept but where a test says so.
  const XDG_STATE_HOME = '/dev/null/localtunnels-tests'
  return { PATH, HOME, TMPDIR, XDG_CONFIG_HOME, XDG_STATE_HOME, TERM: 'xterm-256color', ...more }
}

export interface Finished {
  readonly stdout: string
  readonly stderr: string
  readonly exitCode: number
}

/** Runs to the end, in this folder or another. */
export async function finish(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  folder?: string,
): Promise<Finished> {
  const running = start(args, env, folder)
  const exitCode = await running.exited
  return { stdout: running.stdout, stderr: running.stderr, exitCode }
}

/** Starts in a pipe. */
export function start(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  folder?: string,
): Running {
  return new Running(['bun', BIN, ...args], environment(env), false, folder)
}

/** Starts on a terminal of 100 columns: everything arrives in `stdout`. */
export function startOnTerminal(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Running {
  return new Running(['bun', BIN, ...args], environment(env), true)
}

/** Lines for `sh`, with this environment and no other. The process of the last one takes the place of the shell. */
export function startShell(lines: readonly string[], env: Readonly<Record<string, string>>): Running {
  const script = [...lines.slice(0, -1), `exec ${lines.at(-1)}`].join('\n')
  return new Running(['sh', '-c', script], env, false)
}

export class Running implements AsyncDisposable {
  stdout = ''
  stderr = ''
  readonly exited: Promise<number>
  readonly #child: Bun.Subprocess
  readonly #deadlineMs: number
  readonly #waiting = new Set<() => void>()

  constructor(
    cmd: readonly string[],
    env: Readonly<Record<string, string>>,
    isOnTerminal: boolean,
    folder?: string,
    deadlineMs: number = DEADLINE_MS,
  ) {
    this.#deadlineMs = deadlineMs
    const decoder = new TextDecoder()
    const out = (bytes: Uint8Array) =>
      this.#seen(() => (this.stdout += decoder.decode(bytes, { stream: true })))
    const common = { cmd: [...cmd], env, ...(folder && { cwd: folder }) }
    if (isOnTerminal) {
      this.#child = Bun.spawn({
        ...common,
        terminal: { cols: 100, rows: 30, data: (_, bytes) => out(bytes) },
      })
      this.exited = this.#child.exited
      return
    }
    const child = Bun.spawn({ ...common, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
    this.#child = child
    const read = async (stream: ReadableStream<Uint8Array>, take: (bytes: Uint8Array) => void) => {
      for await (const bytes of stream) take(bytes)
    }
    const errors = new TextDecoder()
    const all = [
      read(child.stdout, out),
      read(child.stderr, bytes => this.#seen(() => (this.stderr += errors.decode(bytes, { stream: true })))),
    ]
    this.exited = Promise.all(all).then(() => child.exited)
  }

  /** Waits until `pattern` was printed, and returns its first group, or the whole match. */
  async printed(pattern: RegExp): Promise<string> {
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), this.#deadlineMs)
    try {
      for (;;) {
        const match = pattern.exec(this.stdout) ?? pattern.exec(this.stderr)
        if (match !== null) return match[1] ?? match[0]
        const change = Promise.withResolvers<void>()
        this.#waiting.add(change.resolve)
        const end = await Promise.race([change.promise, this.exited])
        this.#waiting.delete(change.resolve)
        if (end !== undefined && !pattern.test(this.stdout) && !pattern.test(this.stderr)) {
          throw new Error(`${pattern} never came; exit ${end}\n${this.stdout}\n${this.stderr}`)
        }
      }
    } finally {
      clearTimeout(timer)
    }
  }

  /** Types into the terminal. */
  type(keys: string): void {
    this.#child.terminal?.write(keys)
  }

  get pid(): number {
    return this.#child.pid
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** With what it started: SIGKILL reaches this process alone. */
  async end(): Promise<void> {
    this.#child.kill('SIGTERM')
    await this.exited
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    // Not until its output ends: what it started may hold that.
    await this.#child.exited
  }

  #seen(add: () => void): void {
    add()
    for (const wake of this.#waiting) wake()
  }
}
