// A Redis or Valkey of its own for a test, which can be stopped, started empty, and frozen.

import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './ports.ts'

export class Redis implements AsyncDisposable {
  readonly port: number
  readonly #program: string
  readonly #folder: string
  readonly #flags: readonly string[]
  #process: Bun.Subprocess | undefined

  private constructor(program: string, port: number, folder: string, flags: readonly string[]) {
    this.#flags = flags
    this.#program = program
    this.port = port
    this.#folder = folder
  }

  /** `flags`: more of its settings. */
  static async start(
    program: 'redis-server' | 'valkey-server',
    flags: readonly string[] = [],
  ): Promise<Redis> {
    const folder = await mkdtemp(join(tmpdir(), 'localtunnels-redis-'))
    const redis = new Redis(program, freePort(), folder, flags)
    await redis.run()
    return redis
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /** Starts it, empty, and waits until it answers. */
  async run(): Promise<void> {
    const command = [
      this.#program,
      '--port',
      `${this.port}`,
      '--bind',
      '127.0.0.1',
      '--save',
      '',
      '--dir',
      this.#folder,
      ...this.#flags,
    ]
    this.#process = Bun.spawn(command, { stdout: 'ignore', stderr: 'ignore' })
    while (!(await this.#answers())) await Bun.sleep(5)
  }

  #answers(): Promise<boolean> {
    return new Promise(resolve => {
      const socket = connect(this.port, '127.0.0.1', () => socket.write('PING\r\n'))
      socket.once('data', data => {
        resolve(data.toString().startsWith('+PONG'))
        socket.destroy()
      })
      socket.once('error', () => resolve(false))
    })
  }

  /** Asks until the answer is like this. */
  until(command: string, answer: RegExp): Promise<void> {
    return Redis.untilAt(this.port, command, answer)
  }

  static async untilAt(port: number, command: string, answer: RegExp): Promise<void> {
    const deadline = Date.now() + 15_000
    while (!answer.test(await answerOf(port, command))) {
      if (Date.now() > deadline) throw new Error(`waited in vain for ${answer} of ${command}`)
      await Bun.sleep(20)
    }
  }

  /** It answers nothing, and its connections stay open, until `thaw`. */
  freeze(): void {
    this.#process?.kill('SIGSTOP')
  }

  thaw(): void {
    this.#process?.kill('SIGCONT')
  }

  /** It loses all that it has. */
  async kill(): Promise<void> {
    this.#process?.kill('SIGKILL')
    await this.#process?.exited
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** What it says to one command; `''`: it is not there. */
function answerOf(port: number, command: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const socket = connect(port, '127.0.0.1', () => socket.end(`${command}\r\nQUIT\r\n`))
  let text = ''
  socket.on('data', data => (text += data))
  socket.on('error', () => resolve(''))
  socket.on('close', () => resolve(text))
  return promise
}
