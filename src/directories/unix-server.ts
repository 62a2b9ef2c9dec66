// Serves a directory to other processes of this machine, on a unix socket that only this user can open.

import { createServer, type Server, type Socket } from 'node:net'
import type { Directory } from '../directory.ts'
import { messageOf } from '../errors.ts'
import { bindPrivately } from '../private-socket.ts'
import { Lines, MAX_LINE_BYTES } from './lines.ts'

const METHODS = ['beat', 'claim', 'restore', 'release', 'find', 'ports', 'leave', 'nodes', 'secret'] as const

export interface Call {
  readonly id: number
  readonly method: (typeof METHODS)[number]
  readonly given: readonly unknown[]
}

export type Said =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: string }
  | { readonly changed: readonly [name: string, node: string, epoch: number] }

export class DirectoryServer implements AsyncDisposable {
  readonly path: string
  readonly #directory: Directory
  readonly #server: Server
  readonly #open = new Set<Socket>()
  #stopListening: (() => void) | undefined

  /** Opens a socket at `path`, in a folder that only this user can enter. Rejects with the system's error. */
  static async open(path: string, directory: Directory): Promise<DirectoryServer> {
    const door = new DirectoryServer(path, directory)
    await door.#listen()
    return door
  }

  private constructor(path: string, directory: Directory) {
    this.path = path
    this.#directory = directory
    this.#server = createServer(socket => this.#accept(socket))
  }

  async #listen(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#server.once('error', reject)
    bindPrivately(this.path, () => this.#server.listen(this.path, resolve))
    await promise
    this.#stopListening = await this.#directory.listen({
      changed: (name, node, epoch) => {
        for (const socket of this.#open) say(socket, { changed: [name, node, epoch] })
      },
      reconnected() {},
    })
  }

  #accept(socket: Socket): void {
    this.#open.add(socket)
    const lines = new Lines(line => void this.#answer(socket, line as Call)) // what `UnixDirectory` writes
    socket.on('data', (bytes: Uint8Array) => {
      if (!lines.take(bytes)) socket.destroy()
    })
    socket.on('error', () => {})
    socket.on('close', () => this.#open.delete(socket))
  }

  async #answer(socket: Socket, { id, method, given }: Call): Promise<void> {
    try {
      if (!METHODS.includes(method)) throw new Error(`there is no ${method}`)
      const call = this.#directory[method] as (...given: readonly unknown[]) => Promise<unknown>
      say(socket, { id, result: await call.apply(this.#directory, given as unknown[]) })
    } catch (error) {
      say(socket, { id, error: messageOf(error) })
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopListening?.()
    for (const socket of this.#open) socket.destroy()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#server.close(() => resolve())
    await promise
  }
}

function say(socket: Socket, said: Said): void {
  // A reader that is too slow loses its connection, so that it does not use up this process's memory.
  if (socket.writableLength > MAX_LINE_BYTES) socket.destroy()
  else socket.write(`${JSON.stringify(said)}\n`)
}
