// The directory of another process of this machine, over a unix socket: each call is a line, and so is its response.

import { connect, type Socket } from 'node:net'
import type {
  Beat,
  Directory,
  DirectoryListener,
  DirectoryTimes,
  Hold,
  LostClaim,
  NameOutcome,
  NameWish,
  Node,
  Place,
} from '../directory.ts'
import { messageOf } from '../errors.ts'
import { Lines } from './lines.ts'
import type { Call, Said } from './unix-server.ts'

/** The maximum number of calls that wait for a response. Further ones are refused. */
const MAX_CALLS = 10_000

interface Waiting {
  resolve(value: never): void
  reject(error: Error): void
}

/** A directory over a unix socket. Its calls fail with the connection: a process without its directory is about to end. */
export class UnixDirectory implements Directory {
  readonly #socket: Socket
  readonly #listeners = new Set<DirectoryListener>()
  readonly #waiting = new Map<number, Waiting>()
  #calls = 0
  #isClosed = false

  private constructor(socket: Socket) {
    this.#socket = socket
    const lines = new Lines(line => this.#said(line as Said)) // what `DirectoryDoor` writes
    socket.on('data', (bytes: Uint8Array) => {
      if (!lines.take(bytes)) socket.destroy()
    })
    socket.on('error', () => {})
    socket.on('close', () => this.#closed())
  }

  /** Connects. Rejects if no process listens there. */
  static open(path: string): Promise<UnixDirectory> {
    const { promise, resolve, reject } = Promise.withResolvers<UnixDirectory>()
    const socket = connect(path)
    socket.once('error', reject)
    socket.once('connect', () => resolve(new UnixDirectory(socket)))
    return promise
  }

  explain(error: unknown): string {
    return `The process that holds the names of the workers does not answer: ${messageOf(error)}.`
  }

  listen(listener: DirectoryListener): Promise<() => void> {
    this.#listeners.add(listener)
    // Changes come on the same connection, in order with the responses, so none are missed.
    return Promise.resolve(() => void this.#listeners.delete(listener))
  }

  beat(node: Node, times: DirectoryTimes, highestEpoch: number): Promise<Beat> {
    return this.#call('beat', node, times, highestEpoch)
  }

  claim(node: string, wish: NameWish, times: DirectoryTimes): Promise<NameOutcome> {
    return this.#call('claim', node, wish, times)
  }

  restore(node: string, holds: readonly Hold[], times: DirectoryTimes): Promise<readonly string[]> {
    return this.#call('restore', node, holds, times)
  }

  release(node: string, name: string, epoch: number, lost?: LostClaim): Promise<void> {
    return this.#call('release', node, name, epoch, lost)
  }

  find(name: string): Promise<readonly Place[]> {
    return this.#call('find', name)
  }

  ports(): Promise<readonly string[]> {
    return this.#call('ports')
  }

  leave(node: string): Promise<void> {
    return this.#call('leave', node)
  }

  nodes(): Promise<readonly Node[]> {
    return this.#call('nodes')
  }

  secret(fresh: string): Promise<string> {
    return this.#call('secret', fresh)
  }

  close(): Promise<void> {
    this.#socket.end()
    return Promise.resolve()
  }

  #call<Result>(method: Call['method'], ...given: readonly unknown[]): Promise<Result> {
    if (this.#isClosed) return Promise.reject(new Error('the process of the directory is gone'))
    if (this.#waiting.size >= MAX_CALLS) return Promise.reject(new Error('too much is asked at once'))
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    const id = ++this.#calls
    this.#waiting.set(id, { resolve, reject })
    this.#socket.write(`${JSON.stringify({ id, method, given } satisfies Call)}\n`)
    return promise
  }

  #said(said: Said): void {
    if ('changed' in said) {
      for (const listener of this.#listeners) listener.changed(...said.changed)
      return
    }
    const waiting = this.#waiting.get(said.id)
    this.#waiting.delete(said.id)
    if ('error' in said) waiting?.reject(new Error(said.error))
    else waiting?.resolve(said.result as never) // the result of the same method of the directory there
  }

  #closed(): void {
    this.#isClosed = true
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const one of waiting) one.reject(new Error('the process of the directory is gone'))
  }
}
