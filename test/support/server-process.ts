// A server in a process of its own, with as few descriptors as a test wants. Speaks JSON lines; takes words on stdin.

import { closeSync, openSync, readFileSync } from 'node:fs'
import { type BoundedOptions, boundedServer } from './bounded-server.ts'
import { deferred, within } from './within.ts'

/** What the process prints. */
type Line =
  | { readonly event: 'start'; readonly port: number; readonly tlsPort: number | undefined }
  | { readonly event: 'error'; readonly code: string; readonly message: string }
  | { readonly event: 'cpu'; readonly ms: number }

if (import.meta.main) await run(JSON.parse(process.argv[2] ?? '{}'))

async function run(options: BoundedOptions): Promise<void> {
  const tell = (line: Line) => process.stdout.write(`${JSON.stringify(line)}\n`)
  const server = boundedServer({ port: 0, host: '127.0.0.1', ...options })
  server.on('error', error =>
    tell({ event: 'error', code: String(Reflect.get(error, 'code')), message: error.message }),
  )
  await server.start()
  tell({ event: 'start', port: server.port, tlsPort: server.tlsPort })
  const taken: number[] = []
  for await (const word of console) {
    if (word === 'cpu') {
      const { user, system } = process.cpuUsage()
      tell({ event: 'cpu', ms: (user + system) / 1_000 })
    }
    // As a program does that opens files without end.
    if (word === 'take')
      try {
        for (;;) taken.push(openSync('/dev/null', 'r'))
      } catch {
        // There are no more.
      }
    if (word === 'give') for (const descriptor of taken.splice(0)) closeSync(descriptor)
  }
  await server.stop()
}

export class ServerProcess implements AsyncDisposable {
  port = 0
  /** 0: there is none. */
  tlsPort = 0
  readonly errors: Extract<Line, { event: 'error' }>[] = []
  readonly #child: Bun.Subprocess<'pipe', 'pipe', 'inherit'>
  #heard = deferred()
  #cpuMs = 0

  private constructor(options: BoundedOptions, descriptors: number) {
    this.#child = Bun.spawn({
      cmd: [
        'sh',
        '-c',
        `ulimit -n ${descriptors}; exec "$0" "$@"`,
        'bun',
        import.meta.path,
        JSON.stringify(options),
      ],
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    void this.#read()
  }

  /** `descriptors`: as many as it may open. */
  static async start(options: BoundedOptions, descriptors: number): Promise<ServerProcess> {
    const server = new ServerProcess(options, descriptors)
    await server.when(() => server.port !== 0, 'the server process to start')
    return server
  }

  /** Takes all descriptors that are left, or gives them back. */
  tell(word: 'take' | 'give'): void {
    this.#say(word)
  }

  /** Resident memory in MB: now, and at its highest so far. Linux only. */
  async memory(): Promise<{ readonly now: number; readonly peak: number }> {
    const status = await Bun.file(`/proc/${this.#child.pid}/status`).text()
    const mb = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1024
    return { now: mb('VmRSS'), peak: mb('VmHWM') }
  }

  /**
   * Milliseconds that its main thread has worked so far: what it does before something, whatever else keeps the machine busy. Elsewhere
   * than on Linux the time of the day.
   */
  get workedMs(): number {
    if (process.platform !== 'linux') return performance.now()
    const { pid } = this.#child
    const [onCpuNs] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')
    return Number(onCpuNs) / 1e6
  }

  /** Milliseconds of CPU time so far. */
  async cpuMs(): Promise<number> {
    const before = this.#cpuMs
    this.#say('cpu')
    await this.when(() => this.#cpuMs !== before, 'the CPU time')
    return this.#cpuMs
  }

  async when(condition: () => boolean, what: string): Promise<void> {
    while (!condition()) await within(this.#heard.promise, what)
  }

  #say(word: string): void {
    void this.#child.stdin.write(`${word}\n`)
    void this.#child.stdin.flush()
  }

  async #read(): Promise<void> {
    let text = ''
    const decoder = new TextDecoder()
    for await (const bytes of this.#child.stdout) {
      text += decoder.decode(bytes, { stream: true })
      const lines = text.split('\n')
      text = lines.pop() ?? ''
      for (const line of lines) this.#take(JSON.parse(line) as Line) // what `run` prints
      this.#heard.resolve()
      this.#heard = deferred()
    }
  }

  #take(line: Line): void {
    if (line.event === 'start') {
      this.port = line.port
      this.tlsPort = line.tlsPort ?? 0
    } else if (line.event === 'cpu') this.#cpuMs = line.ms
    else this.errors.push(line)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#child.exited
  }
}
