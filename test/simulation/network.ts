// The network of the simulation: machines, what listens there, connections, and what is wrong between them.

import type { Random } from '../support/random.ts'
import type { Machine, Process } from './process.ts'
import { Socket, type SocketEvents } from './socket.ts'
import type { Timeline } from './timeline.ts'
import { type Paths, Wire } from './wire.ts'

/** Longest that a packet is late where nothing is wrong. */
const MOST_LATE_MS = 300

interface ListenOptions {
  readonly hostname: string
  readonly port: number
  readonly socket: SocketEvents
  readonly data?: unknown
}

interface Listener {
  readonly process: Process
  readonly options: ListenOptions
  readonly port: number
  stop(isCutting?: boolean): void
}

/** When a dial sends its SYN again, and after the last of them gives up (Linux). */
const SYN_MS = [0, 1_000, 3_000, 7_000, 15_000, 31_000, 63_000, 127_000] as const

export class Network implements Paths {
  readonly sockets: Set<Socket> = new Set()
  readonly #wireOf = new Map<Socket, Wire>()
  readonly #timeline: Timeline
  readonly #random: Random
  readonly #machines = new Map<string, Machine>()
  readonly #listeners = new Set<Listener>()
  readonly #wires = new Map<Wire, number>()
  readonly #blocked = new Set<string>()
  readonly #delays = new Map<string, number>()
  #lastPort = 40_000

  constructor(timeline: Timeline, random: Random) {
    this.#timeline = timeline
    this.#random = random
  }

  add(machine: Machine): void {
    this.#machines.set(machine.address, machine)
  }

  // ── What is wrong with it ──────────────────────────────────────────────────────────────────────────────────

  /** Packets from one machine to another are lost from now on. */
  block(from: Machine, to: Machine): void {
    this.#blocked.add(pathOf(from, to))
  }

  unblock(from: Machine, to: Machine): void {
    if (this.#blocked.delete(pathOf(from, to))) this.freed()
  }

  /** Everything arrives again. */
  heal(): void {
    this.#blocked.clear()
    for (const wire of this.#wires.keys()) wire.isSilent = false
    this.freed()
  }

  freed(): void {
    for (const wire of this.#wires.keys()) wire.freed()
  }

  /** Longer or shorter for one pair of machines. */
  slow(from: Machine, to: Machine, ms: number): void {
    this.#delays.set(pathOf(from, to), ms)
  }

  /** One connection, by chance, of those that `isMeant`: cut, or silent from now on. */
  harm(isCut: boolean, isMeant: (socket: Socket) => boolean): string | undefined {
    const open = [...this.sockets].filter(socket => !socket.isClosed && isMeant(socket))
    if (open.length === 0) return undefined
    const socket = this.#random.pick(open)
    const wire = this.#wireOf.get(socket)
    if (isCut) for (const end of [socket, socket.peer]) end.reset()
    else if (wire !== undefined) wire.isSilent = true
    return `${socket.localAddress}:${socket.localPort} and ${socket.remoteAddress}:${socket.remotePort}`
  }

  /** All connections between two programs. */
  cut(near: Process | undefined, far: Process | undefined): void {
    for (const socket of [...this.sockets])
      if (socket.process === near && socket.peer.process === far)
        for (const end of [socket, socket.peer]) end.reset()
  }

  isBlocked(from: Machine, to: Machine): boolean {
    if (from.isOff || to.isOff) return true
    return this.#blocked.has(pathOf(from, to))
  }

  delay(from: Machine, to: Machine): number {
    if (from === to) return 0.02 + this.#random.below(100) / 1_000
    const base = this.#delays.get(pathOf(from, to)) ?? 0.3
    // Few are late, and then by much.
    const isLate = this.#random.chance(0.02)
    const most = isLate ? Math.min(40 * base, MOST_LATE_MS) : base
    return base + (this.#random.below(1_000) / 1_000) * most
  }

  /** Of connections of the simulation's own, such as those to Redis. */
  wire(near: Machine, far: Machine): Wire {
    return this.#wire(near, far, 1)
  }

  /** It is not used any more. */
  drop(wire: Wire): void {
    const ends = (this.#wires.get(wire) ?? 1) - 1
    if (ends <= 0) this.#wires.delete(wire)
    else this.#wires.set(wire, ends)
  }

  #wire(near: Machine, far: Machine, ends: number): Wire {
    const wire = new Wire(near, far, this.#timeline, this, this.#random)
    this.#wires.set(wire, ends)
    return wire
  }

  // ── Programs ───────────────────────────────────────────────────────────────────────────────────────────────

  /** All connections of a program that was killed. `isSilent`: its machine is gone with it. */
  killed(process: Process, isSilent: boolean): void {
    for (const listener of [...this.#listeners])
      if (listener.process === process) this.#listeners.delete(listener)
    for (const socket of [...this.sockets]) {
      if (socket.process !== process) continue
      if (isSilent) socket.vanish()
      else socket.abandon(this.#random.chance(0.5))
    }
  }

  openOf(process: Process): number {
    return [...this.sockets].filter(socket => socket.process === process && !socket.isClosed).length
  }

  // ── In place of Bun's ──────────────────────────────────────────────────────────────────────────────────────

  listen(process: Process, options: ListenOptions): Listener {
    const { port } = options
    if (this.#listenerOf(process.machine, port) !== undefined)
      throw Object.assign(new Error(`port ${port} is in use`), { code: 'EADDRINUSE' })
    const listener: Listener = {
      process,
      options,
      port,
      stop: (isCutting = false) => {
        this.#listeners.delete(listener)
        if (!isCutting) return
        for (const socket of [...this.sockets])
          if (socket.process === process && socket.localPort === port) socket.terminate()
      },
    }
    this.#listeners.add(listener)
    return listener
  }

  connect(process: Process, options: ListenOptions): Promise<Socket> {
    const { machine: near } = process
    const { hostname, port } = options
    const far = isLocal(hostname) ? near : this.#machines.get(hostname)
    if (far === undefined) return Promise.reject(failure('ENOTFOUND'))
    const { promise, resolve, reject } = Promise.withResolvers<Socket>()
    const later = (ms: number, run: () => void): void => void this.#timeline.after(ms, undefined, run)
    const fail = (code: string): void => void this.#timeline.after(0, process, () => reject(failure(code)))
    const knock = (tries: number): void => {
      if (process.isDead) return
      if (this.isBlocked(near, far) || this.isBlocked(far, near)) {
        const [last, next] = [SYN_MS[tries], SYN_MS[tries + 1]]
        if (last === undefined || next === undefined) return fail('ETIMEDOUT')
        return later(next - last, () => knock(tries + 1))
      }
      const listener = this.#listenerOf(far, port)
      if (listener === undefined) return later(this.delay(far, near), () => fail('ECONNREFUSED'))
      const dialled = this.#join(process, options, listener)
      later(this.delay(far, near), () => {
        dialled.opened()
        this.#timeline.after(0, process, () => resolve(dialled))
      })
    }
    later(this.delay(near, far), () => knock(0))
    return promise
  }

  #join(process: Process, options: ListenOptions, listener: Listener): Socket {
    const wire = this.#wire(process.machine, listener.process.machine, 2)
    const port = ++this.#lastPort
    const make = (isNear: boolean): Socket => {
      const { socket: events, data } = isNear ? options : listener.options
      const owner = isNear ? process : listener.process
      const [localPort, remotePort] = isNear ? [port, listener.port] : [listener.port, port]
      const closed = (): void => {
        this.sockets.delete(socket)
        this.#wireOf.delete(socket)
        this.drop(wire)
      }
      const socket: Socket = new Socket(
        { process: owner, events, data, isNear, localPort, remotePort, closed },
        wire,
        this.#timeline,
        this.#random,
      )
      this.sockets.add(socket)
      this.#wireOf.set(socket, wire)
      return socket
    }
    const [dialled, accepted] = [make(true), make(false)]
    dialled.peer = accepted
    accepted.peer = dialled
    // Closing a socket that listens resets what it has not accepted yet.
    accepted.opened(() => this.#listeners.has(listener))
    return dialled
  }

  #listenerOf(machine: Machine, port: number): Listener | undefined {
    return [...this.#listeners].find(one => one.process.machine === machine && one.port === port)
  }
}

function isLocal(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '127.0.0.1'
}

function pathOf(from: Machine, to: Machine): string {
  return `${from.address}>${to.address}`
}

function failure(code: string): Error {
  return Object.assign(new Error(`${code}: simulated`), { code })
}
