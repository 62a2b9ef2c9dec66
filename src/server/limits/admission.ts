// Which connections of strangers come in: bounds for all of them, for each address, and by the descriptors left.

import { closeSync, openSync } from 'node:fs'
import { descriptorLimit, freeDescriptors } from '../../descriptors.ts'
import { type ErrorCode, TunnelError } from '../../errors.ts'
import type { Socket } from '../../socket.ts'
import type { Note } from '../contracts/part.ts'
import { type AddressBounds, AddressCounter, narrowed } from '../settings/address-counter.ts'
import type { Bounds } from '../settings/bounds.ts'
import type { ServerSettings } from '../settings/settings.ts'
import { type Deadline, type Deadlines, TICKS_PER_SECOND } from './deadlines.ts'

/** The operations of the server that admission needs. */
export interface AdmissionHost {
  readonly limits: Bounds
  readonly settings: Pick<ServerSettings, 'addressBounds' | 'isAddressShareDefault'>
  readonly deadlines: Deadlines
  readonly parts?: { noted(note: Note): void }
  /** Whether this is a proxy, whose connections are those of many visitors. */
  isTrusted(address: string): boolean
  failed(error: TunnelError): void
}

/** The user of a connection. */
export interface Occupant {
  /** Cuts the connection if nothing happens on it, for the sake of another one. `false`: it is in use. */
  giveWay(): boolean
}

/** The operations of a counted connection. */
export type Admitted = Pick<Socket, 'remoteAddress' | 'terminate' | 'hasUnread'>

/**
 * The number of free descriptors below which even the control host's reserve is used up: `accept` must never meet none, see
 * `#keepSpare`.
 */
const LAST_DESCRIPTORS = 4
/** Files kept open, to be closed when there is no other descriptor left. */
const SPARES = 2
/** The number of ticks that a connection has for its first bytes before it gives way. */
const PATIENCE_TICKS = TICKS_PER_SECOND
/** Connections looked at for one that gives way or is cut: more would make a refusal dear. */
const MAX_LOOKS = 64
const CHECK_MS = 250
const REPORT_MS = 60_000

type Refusal = 'VISITOR_LIMIT' | 'ADDRESS_LIMIT' | 'DESCRIPTORS_SHORT'

/**
 * A connection is counted from `accept` on, before TLS and before a byte is read. When there is no room for one more, it
 * is *provisional*: it may say what it wants. The control host serves it all the same, so that operators and clients get
 * in when visitors fill everything; for a tunnel it needs an idle connection that gives way. Silent ones never push out
 * others. There are few provisional ones, and the oldest of the address that has most of them is cut for the next.
 */
export class Admission implements Deadline {
  dueTick = 0
  readonly #host: AdmissionHost
  readonly #book: AddressCounter
  /** Requests that are in progress on connections that carry many: each takes as much of a tunnel as a connection. */
  readonly #requests: AddressCounter
  readonly #connections = new Set<AdmittedConnection>()
  /** The oldest first. */
  readonly #provisional = new Set<AdmittedConnection>()
  /** Goes round the connections, and remembers where it was. */
  #hand: Iterator<AdmittedConnection> | undefined
  /** Connections that may come before descriptors are counted again. */
  #budget = 0
  /** Whether descriptors were short at the last check. */
  #isShort = false
  #reserve = 0
  /** Descriptors that there can be. */
  #limit = Number.POSITIVE_INFINITY
  readonly #spares: number[] = []
  readonly #refused = new Map<Refusal, number>()
  readonly #reportedAt = new Map<Refusal, number>()
  /** The last one that was refused for its own connections. */
  #lastAddress = ''
  /** The number of free descriptors when they were short last. */
  #lastFree = 0

  constructor(host: AdmissionHost) {
    this.#host = host
    this.#book = new AddressCounter(() => this.#addressBounds)
    this.#requests = new AddressCounter(() => ({ ...this.#addressBounds, maxPerSecond: 0 }))
  }

  start(): void {
    const { deadlines } = this.#host
    deadlines.watch(this)
    deadlines.arm(this, CHECK_MS)
    this.#count()
    this.#keepSpare()
  }

  stop(): void {
    this.#host.deadlines.forget(this)
    for (const spare of this.#spares.splice(0)) closeSync(spare)
  }

  get count(): number {
    return this.#connections.size
  }

  /**
   * Admits a connection, or returns `undefined`: cut it at once. `speaksFirst`: it says what it wants before anything is done
   * for it. `undefined`: it is to be cut at once.
   */
  admit(socket: Admitted, speaksFirst: boolean): AdmittedConnection | undefined {
    const address = this.#host.isTrusted(socket.remoteAddress) ? '' : socket.remoteAddress
    const key = this.#book.enter(address)
    if (key === undefined) return this.#refuse('ADDRESS_LIMIT', address)
    const admitted = new AdmittedConnection(this, socket, key, this.#host.deadlines.tick)
    const shortage = this.#shortage()
    const code = shortage === 'visitors' ? 'VISITOR_LIMIT' : 'DESCRIPTORS_SHORT'
    const hasRoom = shortage === undefined || (shortage !== 'last' && !speaksFirst && this.#makeRoom())
    if (!hasRoom && (shortage === 'last' || !speaksFirst)) {
      this.#book.leave(key)
      return this.#refuse(code, address)
    }
    this.#budget--
    if (hasRoom) this.#connections.add(admitted)
    else this.#addProvisional(admitted, code)
    return admitted
  }

  #addProvisional(admitted: AdmittedConnection, code: Refusal): void {
    admitted.refusal = code
    this.#provisional.add(admitted)
    if (this.#provisional.size <= this.#mostProvisional) return
    const first = this.#firstOfMost()
    this.#refuse(code, first?.key ?? '')
    first?.cut()
  }

  /**
   * The oldest provisional one of the address that has most of the oldest: a flood from one address must not cut those of
   * others. A connection that has sent something stays while there are silent ones: where hundreds come at once, all are
   * accepted before the first is read.
   */
  #firstOfMost(): AdmittedConnection | undefined {
    const byAddress = new Map<string, AdmittedConnection[]>()
    let looks = MAX_LOOKS
    for (const admitted of this.#provisional) {
      if (looks-- === 0) break
      const connections = byAddress.get(admitted.key)
      if (connections === undefined) byAddress.set(admitted.key, [admitted])
      else connections.push(admitted)
    }
    let most: AdmittedConnection[] = []
    for (const connections of byAddress.values()) if (connections.length > most.length) most = connections
    return most.find(admitted => !admitted.hasSaidSomething) ?? most[0]
  }

  /** Settles a provisional connection that wants a tunnel: it needs room like any other. */
  settle(admitted: AdmittedConnection): boolean {
    if (this.#shortage() !== undefined && !this.#makeRoom()) {
      if (admitted.refusal !== undefined) this.#refuse(admitted.refusal, admitted.key)
      return false
    }
    this.#provisional.delete(admitted)
    this.#connections.add(admitted)
    return true
  }

  /** The connection belongs to this address. `undefined`: it has too many. */
  move(admitted: AdmittedConnection, address: string): string | undefined {
    const key = this.#book.enter(address)
    if (key === undefined) return this.#refuse('ADDRESS_LIMIT', address)
    this.#book.leave(admitted.key)
    return key
  }

  /** Counts a request, as `AdmittedConnection.takesRequest`. */
  takesRequest(admitted: AdmittedConnection): (() => void) | undefined {
    const key = this.#requests.enter(admitted.key)
    return key === undefined ? this.#refuse('ADDRESS_LIMIT', admitted.key) : () => this.#requests.leave(key)
  }

  /** A request that was given up counts as a connection of its address. `false`: it has too many. */
  mayGiveUp(admitted: AdmittedConnection): boolean {
    if (this.#book.mayDoAgain(admitted.key)) return true
    this.#refuse('ADDRESS_LIMIT', admitted.key)
    return false
  }

  gaveUp(admitted: AdmittedConnection, count: number): void {
    this.#book.didAgain(admitted.key, count)
  }

  leave(admitted: AdmittedConnection, isClosed: boolean): void {
    if (!this.#connections.delete(admitted) && !this.#provisional.delete(admitted)) return
    this.#book.leave(admitted.key)
    if (isClosed && ++this.#budget > 0) this.#isShort = false
  }

  /**
   * Whether one more connection or port of a client leaves enough for others: its token or address has `ownCount`, all of
   * them have `allCount`. Of the reserve they leave what operators need.
   */
  hasRoomForClient(ownCount: number, allCount: number): boolean {
    const hasRoom = this.#isWithinShare(ownCount, allCount) && this.#isReserveFree()
    if (!hasRoom) this.#refuse('DESCRIPTORS_SHORT', '')
    return hasRoom
  }

  /** The same for a link; the counts include links. A client works without them: they leave more of the reserve. */
  hasRoomForLink(ownCount: number, allCount: number): boolean {
    if (!this.#isWithinShare(ownCount, allCount)) return false
    const least = this.#reserve >> 1
    if (this.#budget <= least) this.#count()
    return this.#budget > least
  }

  #isWithinShare(ownCount: number, allCount: number): boolean {
    const { clientDescriptorsPercent, tokenDescriptorsPercent } = this.#host.limits
    const most = (clientDescriptorsPercent / 100) * (this.#limit - this.#reserve)
    return ownCount < (tokenDescriptorsPercent / 100) * most && allCount < most
  }

  /** Whether more descriptors are free than the next provisional connections need. */
  #isReserveFree(): boolean {
    if (this.#budget > 0) return true
    const least = Math.max(0, this.#mostProvisional - this.#provisional.size) + LAST_DESCRIPTORS + 1
    const free = freeDescriptors(least + 1) ?? Number.POSITIVE_INFINITY
    if (free <= least) this.#lastFree = free
    return free > least
  }

  get #addressBounds(): AddressBounds {
    const { settings, limits } = this.#host
    const { addressBounds, isAddressShareDefault } = settings
    // Else one address has at most half of the places, however many there are.
    if (!isAddressShareDefault) return addressBounds
    const places = Math.min(limits.maxVisitors, this.#limit - this.#reserve)
    return narrowed(addressBounds, Math.max(1, Math.floor(places / 2)))
  }

  get #mostProvisional(): number {
    return Math.max(1, this.#reserve >> 1)
  }

  /** Descriptors are used by others as well: what was counted before is not true for long. */
  expired(): void {
    this.#host.deadlines.arm(this, CHECK_MS)
    this.#count()
    this.#keepSpare()
    for (const code of this.#refused.keys()) this.#report(code)
  }

  #count(): void {
    const limit = descriptorLimit() ?? Number.POSITIVE_INFINITY
    this.#limit = limit
    // Visitors have three of four descriptors even if there are few.
    this.#reserve = Math.min(this.#host.limits.reservedDescriptors, Math.floor(limit / 4))
    const least = Math.max(this.#reserve, LAST_DESCRIPTORS)
    // Twice as many: the next count is due when half of them are taken.
    const free = freeDescriptors(2 * least) ?? Number.POSITIVE_INFINITY
    this.#budget = free - least
    this.#isShort = this.#budget <= 0
    if (this.#isShort) this.#lastFree = free
  }

  /**
   * Returns why there is no room for one more visitor. `last`: nor for clients and operators.
   */
  #shortage(): 'visitors' | 'descriptors' | 'last' | undefined {
    if (this.#budget <= 0) {
      // Cheap where there are none, and exact: this decides whether the next `accept` finds one.
      const free = freeDescriptors(LAST_DESCRIPTORS + 1) ?? Number.POSITIVE_INFINITY
      if (free <= LAST_DESCRIPTORS) {
        this.#lastFree = free
        return 'last'
      }
      if (!this.#isShort) this.#count()
      if (this.#budget <= 0) return 'descriptors'
    }
    return this.#connections.size < this.#host.limits.maxVisitors ? undefined : 'visitors'
  }

  /**
   * Closes an idle connection, beginning with the one that was looked at longest ago.
   */
  #makeRoom(): boolean {
    for (let looks = Math.min(MAX_LOOKS, this.#connections.size); looks > 0; looks--) {
      this.#hand ??= this.#connections.values()
      const { value: admitted, done } = this.#hand.next()
      if (done) this.#hand = undefined
      else if (admitted.giveWay(this.#host.deadlines.tick - PATIENCE_TICKS)) return true
    }
    return false
  }

  /**
   * Keeps a spare descriptor, because others in this process may take the last one. Then the system has `accept` fail and
   * offers the connection again at once, without limit: a core is busy and this code gets no event. With a spare one closed,
   * connections are accepted and cut.
   */
  #keepSpare(): void {
    const free = freeDescriptors(SPARES + LAST_DESCRIPTORS + 1)
    if (free === 0) for (const spare of this.#spares.splice(0)) closeSync(spare)
    if (free === undefined || free <= SPARES + LAST_DESCRIPTORS) return
    while (this.#spares.length < SPARES) this.#spares.push(openSync('/dev/null', 'r'))
  }

  #refuse(code: Refusal, address: string): undefined {
    this.#host.parts?.noted({ kind: 'refused', code })
    this.#refused.set(code, (this.#refused.get(code) ?? 0) + 1)
    if (code === 'ADDRESS_LIMIT') this.#lastAddress = address
    this.#report(code)
  }

  /** Reports at once, and then once a minute: a flood of connections must not be one of events. */
  #report(code: Refusal): void {
    const count = this.#refused.get(code) ?? 0
    const now = performance.now()
    if (count === 0 || now - (this.#reportedAt.get(code) ?? -REPORT_MS) < REPORT_MS) return
    this.#reportedAt.set(code, now)
    this.#refused.set(code, 0)
    this.#host.failed(
      new TunnelError(code, `${this.#reason(code)} Connections refused since the last report: ${count}.`),
    )
  }

  #reason(code: ErrorCode): string {
    const { limits } = this.#host
    if (code === 'VISITOR_LIMIT')
      return `There are ${this.count} connections of visitors, and maxVisitors is ${limits.maxVisitors}.`
    if (code === 'ADDRESS_LIMIT') {
      const { maxOpen, maxPerSecond } = this.#addressBounds
      return `${this.#lastAddress} opens more than ${maxOpen} connections, or ${maxPerSecond} a second.`
    }
    const limit = descriptorLimit() ?? 0
    // Not counted now: a report of what was refused may come when a million are free again, and counting opens each of them.
    return `${limit - this.#lastFree} of ${limit} descriptors are open, ${this.#reserve} are kept for the control host, and ${this.count} are visitors'.`
  }
}

const STAYING: Occupant = { giveWay: () => false }

/** An accepted connection among those that the server counts, until it is closed. */
export class AdmittedConnection {
  /** The owner of the connection, as the address book has it. */
  key: string
  /** The reason why only the control host may serve it. */
  refusal: Refusal | undefined
  /** The user who may give it up; without one, it is cut when it takes too long to say what it wants. */
  occupant: Occupant | undefined
  readonly #admission: Admission
  readonly #socket: Admitted
  readonly #openedTick: number

  constructor(admission: Admission, socket: Admitted, key: string, openedTick: number) {
    this.#admission = admission
    this.#socket = socket
    this.key = key
    this.#openedTick = openedTick
  }

  /** Whether it is for the control host only. Asks for room again, as some may have left. */
  isRefused(): boolean {
    if (this.refusal === undefined) return false
    if (!this.#admission.settle(this)) return true
    this.refusal = undefined
    return false
  }

  /** A proxy's header names the visitor. `false`: the address has too many, and the connection is to be cut. */
  moveTo(address: string): boolean {
    const key = this.#admission.move(this, address)
    if (key === undefined) return false
    this.key = key
    return true
  }

  /**
   * Counts the beginning of one of many requests on the connection. Returns what ends it; `undefined`: the address has too many
   * in progress.
   */
  takesRequest(): (() => void) | undefined {
    return this.#admission.takesRequest(this)
  }

  /**
   * Counts one of many requests that was given up. Returns `false` if the address has given up too many.
   */
  mayGiveUp(): boolean {
    return this.#admission.mayGiveUp(this)
  }

  /** The connection is over with this many requests that were without a response. */
  gaveUp(count: number): void {
    this.#admission.gaveUp(this, count)
  }

  /** Lets the connection be silent without limit. */
  stay(): void {
    this.occupant = STAYING
  }

  /** The connection is a client's: it is bounded as such, and not with visitors. */
  release(): void {
    this.#admission.leave(this, false)
  }

  left(): void {
    this.#admission.leave(this, true)
  }

  /** Whether it has sent something, and is the next to be read. */
  get hasSaidSomething(): boolean {
    return this.#socket.hasUnread === true
  }

  giveWay(patientSinceTick: number): boolean {
    if (this.occupant !== undefined) return this.occupant.giveWay()
    if (this.#openedTick > patientSinceTick) return false
    this.cut()
    return true
  }

  cut(): void {
    this.#socket.terminate()
    this.left()
  }
}
