// One connection of a server to the simulated Redis, as ioredis keeps it with the options of src/directories/redis.ts.

import type { MemoryDirectory } from '../../src/directories/memory.ts'
import type { Process } from './process.ts'
import type { Redis, RedisClient } from './redis.ts'
import type { Wire } from './wire.ts'

/** `COMMAND_MS` and `RETRY_MS` of src/directories/redis.ts. */
const COMMAND_MS = 2_000
const RETRY_MS = [100, 200, 500, 1_000] as const

type Run<Result> = (directory: MemoryDirectory) => Promise<Result>

interface Command {
  readonly run: Run<unknown>
  resolve(result: unknown): void
  reject(error: Error): void
}

export class RedisConnection implements RedisClient {
  changed: RedisClient['changed']
  written: RedisClient['written']
  /** Calls `ready` whenever it is connected again. */
  ready: () => void = () => {}
  readonly #process: Process
  readonly #redis: Redis
  #wire: Wire | undefined
  #isReady = false
  #isOver = false
  #tries = 0
  /** Each connection is another one: what comes from an earlier one is not for this. */
  #number = 0
  /** Sent, or to be sent once it is connected. */
  readonly #waiting = new Set<Command>()
  #stopSilence: (() => void) | undefined

  constructor(process: Process, redis: Redis) {
    this.#process = process
    this.#redis = redis
    this.#connect()
  }

  get isReady(): boolean {
    return this.#isReady
  }

  command<Result>(run: Run<Result>): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    if (this.#isOver) return Promise.reject(new Error('Connection is closed.'))
    const cancel = this.#after(COMMAND_MS, () => command.reject(new Error('Command timed out')))
    const settle = (): boolean => {
      cancel()
      return this.#waiting.delete(command)
    }
    const command: Command = {
      run,
      resolve: result => settle() && resolve(result),
      reject: error => settle() && reject(error),
    }
    this.#waiting.add(command)
    if (this.#isReady) this.#send(command)
    return promise as Promise<Result> // what `run` gives
  }

  /** What Redis says unasked. Lost where the connection is. */
  say(tell: () => void): void {
    const number = this.#number
    this.#wire?.send(false, () =>
      this.#run(() => {
        if (number === this.#number) tell()
      }),
    )
  }

  closed(): void {
    const number = this.#number
    this.#wire?.send(false, () => this.#run(() => number === this.#number && this.#lost('closed')))
  }

  /** Redis goes on to send what nobody hears; where the machine is gone, it does not even notice. */
  vanish(isSilent: boolean): void {
    this.#isOver = true
    if (!isSilent) this.#redis.clients.delete(this)
  }

  close(): void {
    this.#isOver = true
    this.#lost('closed')
  }

  #connect(): void {
    if (this.#isOver) return
    const redis = this.#redis
    const number = ++this.#number
    const wire = redis.network.wire(this.#process.machine, redis.machine)
    this.#wire = wire
    const cancel = this.#after(COMMAND_MS, () => number === this.#number && this.#lost('connect ETIMEDOUT'))
    wire.send(true, () => {
      const isUp = redis.process !== undefined
      if (isUp && number === this.#number) redis.clients.add(this)
      wire.send(false, () =>
        this.#run(() => {
          cancel()
          if (number !== this.#number) return
          if (isUp) this.#connected()
          else this.#lost('connect ECONNREFUSED')
        }),
      )
    })
  }

  #connected(): void {
    this.#tries = 0
    this.#isReady = true
    for (const command of this.#waiting) this.#send(command)
    this.ready()
  }

  #send(command: Command): void {
    const number = this.#number
    const wire = this.#wire
    this.#awaitData()
    wire?.send(true, () =>
      this.#redis.execute(this, command.run, result =>
        wire.send(false, () =>
          this.#run(() => {
            if (number !== this.#number) return
            this.#stopSilence?.()
            this.#stopSilence = undefined
            command.resolve(result)
            if (this.#waiting.size > 0) this.#awaitData()
          }),
        ),
      ),
    )
  }

  /** `socketTimeout`: nothing comes while something is awaited. */
  #awaitData(): void {
    this.#stopSilence ??= this.#after(COMMAND_MS, () => this.#lost('Socket timeout'))
  }

  /** With `maxRetriesPerRequest` 0 everything that waits fails. */
  #lost(message: string): void {
    this.#number++
    this.#isReady = false
    this.#stopSilence?.()
    this.#stopSilence = undefined
    this.changed = undefined
    this.written = undefined
    this.#redis.clients.delete(this)
    if (this.#wire !== undefined) this.#redis.network.drop(this.#wire)
    this.#wire = undefined
    for (const command of [...this.#waiting]) command.reject(new Error(message))
    if (this.#isOver) return
    this.#after(RETRY_MS[Math.min(this.#tries++, RETRY_MS.length - 1)] ?? 0, () => this.#connect())
  }

  #after(ms: number, run: () => void): () => void {
    return this.#redis.timeline.after(ms, this.#process, run)
  }

  #run(run: () => void): void {
    this.#after(0, run)
  }
}
