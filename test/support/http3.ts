// A visitor that speaks HTTP/3 and shares no code with the server: quic-go, built once for all tests of a run.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type Fields = readonly (readonly [name: string, value: string])[]

/** See `main.go`. */
export interface Http3Request {
  readonly method?: string
  readonly path?: string
  /** Each character of a value is a byte. */
  readonly fields?: Fields
  readonly body?: string
  readonly bodyBytes?: number
  readonly hasLength?: boolean
  readonly trailers?: Fields
  readonly cancelMs?: number
  readonly readMs?: number
}

export interface Http3Answer {
  readonly id: number
  /** 0: there was none. */
  readonly status: number
  readonly fields: Fields
  readonly interim: readonly number[] | null
  /** Its first 4,096 bytes. */
  readonly body: string
  readonly bytes: number
  readonly sum: string
  readonly trailers: Fields | null
  /** What went wrong; empty: nothing. */
  readonly error: string
  /** The common name of the certificate that the server showed. */
  readonly certificate: string
}

export const GO: string | null = Bun.which('go')

let built: Promise<string> | undefined

async function build(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'lt-http3-'))
  process.once('exit', () => void rm(folder, { recursive: true, force: true }))
  const program = join(folder, 'visitor')
  const child = Bun.spawn(['go', 'build', '-o', program, '.'], {
    cwd: join(import.meta.dir, 'http3-visitor'),
    stderr: 'pipe',
  })
  if ((await child.exited) !== 0) throw new Error(`go build: ${await child.stderr.text()}`)
  return program
}

/** Builds the visitor, which takes a while the first time. */
export function buildVisitor(): Promise<string> {
  built ??= build()
  return built
}

export class Http3Visitor implements AsyncDisposable {
  readonly #child: Bun.Subprocess<'pipe', 'pipe', 'pipe'>
  readonly #host: string
  readonly #waiting = new Map<number, PromiseWithResolvers<Http3Answer>>()
  #said = ''
  #next = 1

  private constructor(program: string, port: number, host: string) {
    this.#host = host
    this.#child = Bun.spawn([program, `127.0.0.1:${port}`], { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' })
    void this.#read()
    void this.#child.stderr.text().then(text => (this.#said = text))
  }

  /** `host`: of all its requests. */
  static async start(port: number, host: string): Promise<Http3Visitor> {
    return new Http3Visitor(await buildVisitor(), port, host)
  }

  ask(request: Http3Request): Promise<Http3Answer> {
    const id = this.#next++
    const waiting = Promise.withResolvers<Http3Answer>()
    this.#waiting.set(id, waiting)
    const line = { method: 'GET', path: '/', fields: [], ...request, id, host: this.#host }
    void this.#child.stdin.write(`${JSON.stringify(line)}\n`)
    void this.#child.stdin.flush()
    return waiting.promise
  }

  /** Gives up all requests that are under way. */
  giveUp(): void {
    void this.#child.stdin.write('{"giveUp":true}\n')
    void this.#child.stdin.flush()
  }

  async #read(): Promise<void> {
    let rest = ''
    for await (const piece of this.#child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + piece).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const answer = JSON.parse(line) as Http3Answer
        this.#waiting.get(answer.id)?.resolve(answer)
        this.#waiting.delete(answer.id)
      }
    }
    for (const { reject } of this.#waiting.values()) reject(new Error(`the visitor has ended: ${this.#said}`))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#child.exited
  }
}
