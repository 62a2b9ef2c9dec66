// Every process a benchmark starts: it is ended with the benchmark, whatever happens, by its own id.

import type { Subprocess } from 'bun'

const running = new Set<Subprocess>()
const interruption = new AbortController()
let guarded = false

/** Aborted by the first Ctrl+C: stop measuring, print what there is. */
export const interrupted: AbortSignal = interruption.signal

/** Far more than any program here takes. Tests with one that never starts have it shorter. */
export const START_DEADLINE_MS: number = Number(process.env.BENCH_START_MS ?? 15_000)

export interface Child {
  readonly pid: number
  /** Last lines of both outputs: the reason when it dies. */
  output(): string
  readonly exited: Promise<number>
  stop(this: void): Promise<void>
}

export interface LaunchOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** Resolves the launch when a line of output matches; else it resolves at once. */
  readonly ready?: RegExp
  readonly deadlineMs?: number
  readonly stdin?: Uint8Array
  /** Its output is a terminal. */
  readonly terminal?: boolean
  /** Sees every line of both outputs. */
  onLine?(line: string): void
}

export type Launched = Child & { readonly match: RegExpExecArray | null }

/** Starts a process in a group of its own, so that Ctrl+C reaches the benchmark first. */
export async function launch(command: readonly string[], options: LaunchOptions = {}): Promise<Launched> {
  guard()
  const tail: string[] = []
  const seen = Promise.withResolvers<RegExpExecArray | null>()
  if (!options.ready) seen.resolve(null)
  const take = lines(line => {
    options.onLine?.(line)
    tail.push(line)
    if (tail.length > 20) tail.shift()
    const match = options.ready?.exec(line)
    if (match) seen.resolve(match)
  })
  const shared = { cwd: options.cwd, env: { ...process.env, ...options.env }, detached: true }
  const child = options.terminal
    ? Bun.spawn([...command], {
        ...shared,
        terminal: { cols: 120, rows: 40, data: (_, bytes) => take(bytes) },
      })
    : Bun.spawn([...command], { ...shared, stdin: options.stdin ?? 'ignore', stdout: 'pipe', stderr: 'pipe' })
  running.add(child)
  const exited = child.exited.finally(() => running.delete(child))
  for (const output of [child.stdout, child.stderr])
    if (output instanceof ReadableStream) void follow(output, take)
  void exited.then(code => seen.reject(new Error(`${command[0]} ended with ${code}: ${gist(tail)}`)))
  const timer = setTimeout(
    () => seen.reject(new Error(`${command[0]} was not ready in time: ${gist(tail)}`)),
    options.deadlineMs ?? START_DEADLINE_MS,
  )
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    const late = setTimeout(() => child.kill('SIGKILL'), 2_000)
    await exited
    clearTimeout(late)
  }
  try {
    const match = await seen.promise
    return { pid: child.pid, exited, output: () => tail.join('\n'), stop, match }
  } catch (error) {
    await stop()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** The line of an output that says what went wrong. */
function gist(lines: readonly string[]): string {
  return lines.find(line => /^error\b/i.test(line)) ?? lines.at(-1) ?? 'it said nothing'
}

export interface Finished {
  readonly stdout: string
  readonly stderr: string
  readonly code: number
  readonly cpuSeconds: number
}

/** Runs a program to its end. Aborting kills it. */
export async function finish(
  command: readonly string[],
  options: {
    readonly stdin?: string | Uint8Array
    readonly env?: Readonly<Record<string, string>>
    readonly timeoutMs?: number
  } = {},
): Promise<Finished> {
  guard()
  const child = Bun.spawn([...command], {
    env: { ...process.env, ...options.env },
    stdin: options.stdin === undefined ? 'ignore' : Buffer.from(options.stdin),
    stdout: 'pipe',
    stderr: 'pipe',
    detached: true,
  })
  running.add(child)
  const kill = (): void => child.kill('SIGKILL')
  interrupted.addEventListener('abort', kill, { once: true })
  const timer = options.timeoutMs ? setTimeout(kill, options.timeoutMs) : undefined
  try {
    const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    const used = child.resourceUsage()
    // Bun counts processor time in microseconds, as bigint or number depending on the field.
    const cpu = used ? (Number(used.cpuTime.user) + Number(used.cpuTime.system)) / 1e6 : 0
    return { stdout, stderr, code, cpuSeconds: cpu }
  } finally {
    clearTimeout(timer)
    interrupted.removeEventListener('abort', kill)
    running.delete(child)
  }
}

export async function stopAll(): Promise<void> {
  for (const child of running) child.kill('SIGKILL')
  await Promise.allSettled([...running].map(child => child.exited))
}

function guard(): void {
  if (guarded) return
  guarded = true
  process.on('exit', () => {
    for (const child of running) child.kill('SIGKILL')
  })
  process.on('SIGINT', interrupt)
  process.on('SIGTERM', interrupt)
}

/** Ends the measuring, not the program: what was measured is printed and saved. */
export function interrupt(): void {
  if (interrupted.aborted) process.exit(130)
  process.stderr.write('\nstopping; once more to leave at once\n')
  interruption.abort(new Error('interrupted'))
}

async function follow(output: ReadableStream<Uint8Array>, take: (bytes: Uint8Array) => void): Promise<void> {
  for await (const bytes of output) take(bytes)
}

/** Cuts what comes into lines; a terminal ends them with CR LF. */
function lines(take: (line: string) => void): (bytes: Uint8Array) => void {
  const decoder = new TextDecoder()
  let rest = ''
  return bytes => {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split(/\r?\n/)
    rest = parts.pop() ?? ''
    for (const line of parts) take(line)
  }
}
