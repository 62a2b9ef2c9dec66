// Processes that tests start, kill and freeze.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from './events.ts'
import { within } from './within.ts'

const PROGRAM = ['bun', join(import.meta.dir, 'client-process.ts')]

export class ClientProcess implements AsyncDisposable {
  readonly #child: Bun.Subprocess<'ignore', 'pipe', 'inherit'>
  readonly #lines: AsyncIterator<{ readonly event: string; readonly name: string }>

  /** `name`: a subdomain, `tcp`, or `tcp-20000`. `program`: the script, and what runs it. */
  constructor(
    server: string,
    name: string,
    origin: number,
    options: {
      readonly isPooled?: boolean
      readonly isJson?: boolean
      readonly program?: readonly string[]
    } = {},
  ) {
    const { isPooled = false, isJson = false, program = PROGRAM } = options
    this.#child = Bun.spawn({
      cmd: [...program, server, name, `${origin}`, ...(isPooled ? ['pool'] : isJson ? ['json'] : [])],
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    this.#lines = lines(this.#child.stdout)
  }

  /** The next event of this name; others are passed over. */
  async event(name: string): Promise<string> {
    for (;;) {
      const { value, done } = await within(this.#lines.next(), `${name} of the client process`)
      if (done) throw new Error(`the client process ended without ${name}`)
      if (value.event === name) return value.name
    }
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Stops it. Resolves when all of its threads stand still. */
  async freeze(): Promise<void> {
    this.#child.kill('SIGSTOP')
    await standsStill(this.#child.pid)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#child.exited
  }
}

/** Resolves when all threads of a process that got SIGSTOP stand still: on another core they go on for a while after the signal. */
export function standsStill(pid: number): Promise<void> {
  return eventually(() => isStopped(pid), `process ${pid} to stand still`)
}

/** Whether each thread is in state T. Systems without /proc do not say so. */
function isStopped(pid: number): boolean {
  const threads = `/proc/${pid}/task`
  if (!existsSync(threads)) return true
  return readdirSync(threads).every(thread => {
    // Behind the name of the program, which is in parentheses.
    const stat = readFileSync(`${threads}/${thread}/stat`, 'latin1')
    return stat.startsWith('T', stat.lastIndexOf(')') + 2)
  })
}

async function* lines(stream: ReadableStream<Uint8Array>): AsyncGenerator<{ event: string; name: string }> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const bytes of stream) {
    text += decoder.decode(bytes, { stream: true })
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n')) {
      yield JSON.parse(text.slice(0, end))
      text = text.slice(end + 1)
    }
  }
}
