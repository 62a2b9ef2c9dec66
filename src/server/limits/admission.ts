// Admits connections: limits for all of them, for each address, and by the free descriptors.

import { closeSync, openSync } from 'node:fs'
import { descriptorLimit, freeDescriptors } from '../../descriptors.ts'
import { ERRORS, type ErrorCode, TunnelError } from '../../errors.ts'
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
  /** Whether this is a trusted proxy, whose connections carry many visitors. */
  isTrusted(address: string): boolean
  failed(error: TunnelError): void
}

/** The object that uses a connection. */
export interface Occupant {
  /** Cuts the connection if it is idle, to make room for another one. Returns `false` if it is in use. */
  giveWay(): boolean
}

/** The socket members that counting needs. */
export type Admitted = Pick<Socket, 'remoteAddress' | 'terminate' | 'hasUnread'>

/**
 * The number of free descriptors below which even the control host gets no connection. `accept` must never run out of
 * them; see `#keepSpare`.
 */
const LAST_DESCRIPTORS = 4
/** The number of files kept open, to be closed when no other descriptor is free. */
const SPARES = 2
/** The number of ticks that a connection has for its first bytes before another may replace it. */
const PATIENCE_TICKS = TICKS_PER_SECOND
/** The number of connections examined to find one to close. A larger number would make refusals expensive. */
const MAX_LOOKS = 64
const CHECK_MS = 250
const REPORT_MS = 60_000

type Refusal = 'VISITOR_LIMIT' | 'ADDRESS_LIMIT' | 'DESCRIPTORS_SHORT'

/**
 * Counts connections from `accept` on, before TLS and before a byte is read.
 *
 * If there is no room, a connection is *provisional*: it may say what it wants. The control host serves it anyway, so
 * that operators and clients get in when visitors fill the server. A tunnel serves it only if an idle connection
 * gives way. There are few provisional connections; for a new one, the oldest of the address with most of them is
 * cut. Connections that send nothing never replace others.
 */
export class Admission implements Deadline {
  dueTick = 0
  readonly #host: AdmissionHost
  readonly #book: AddressCounter
  /** Requests in progress on connections that carry many (HTTP/2, HTTP/3). Each one loads a tunnel as much as a connection. */
  readonly #requests: AddressCounter
  readonly #connections = new Set<AdmittedConnection>()
  /** The provisional connections, the oldest first. */
  readonly #provisional = new Set<AdmittedConnection>()
  /** The position in the search for an idle connection, which continues there next time. */
  #hand: Iterator<AdmittedConnection> | undefined
  /** The number of connections that may come before free descriptors are counted again. */
  #budget = 0
  /** Whether descriptors were scarce at the last check. */
  #isShort = false
  #reserve = 0
  /** The number of descriptors that the process may open. */
  #limit = Number.POSITIVE_INFINITY
  readonly #spares: number[] = []
  readonly #refused = new Map<Refusal, number>()
  readonly #reportedAt = new Map<Refusal, number>()
  /** The last address that was refused because of its own connections. */
  #lastAddress = ''
  /** The number of free descriptors when they were last scarce. */
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
   * Admits a connection. `undefined`: it must be cut at once. `speaksFirst`: it says what it wants before anything is
   * done for it.
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
   * Returns the oldest provisional connection of the address that has most of the oldest ones, so that a flood from
   * one address does not cut others. A connection that has sent bytes stays while there are silent ones: when
   * hundreds come at once, all are accepted before the first is read.
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

  /** Finds room for a provisional connection that wants a tunnel. */
  settle(admitted: AdmittedConnection): boolean {
    if (this.#shortage() !== undefined && !this.#makeRoom()) {
      if (admitted.refusal !== undefined) this.#refuse(admitted.refusal, admitted.key)
      return false
    }
    this.#provisional.delete(admitted)
    this.#connections.add(admitted)
    return true
  }

  /** Counts the connection for this address. Returns `undefined` if the address has too many. */
  move(admitted: AdmittedConnection, address: string): string | undefined {
    const key = this.#book.enter(address)
    if (key === undefined) return this.#refuse('ADDRESS_LIMIT', address)
    this.#book.leave(admitted.key)
    return key
  }

  /** Counts a request; see `AdmittedConnection.takesRequest`. */
  takesRequest(admitted: AdmittedConnection): (() => void) | undefined {
    const key = this.#requests.enter(admitted.key)
    return key === undefined ? this.#refuse('ADDRESS_LIMIT', admitted.key) : () => this.#requests.leave(key)
  }

  /**
   * Counts a request that the visitor gave up as a new connection of its address. Returns `false` if the address has too many.
   */
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
   * Whether one more connection or port of a client leaves enough descriptors for others. Its token or address has
   * `ownCount`, all of them have `allCount`. Clients leave the part of the reserve that operators need.
   */
  hasRoomForClient(ownCount: number, allCount: number): boolean {
    const hasRoom = this.#isWithinShare(ownCount, allCount) && this.#isReserveFree()
    if (!hasRoom) this.#refuse('DESCRIPTORS_SHORT', '')
    return hasRoom
  }

  /**
   * As `hasRoomForClient`, for a link; the counts include links. Clients work without links, so links leave more of
   * the reserve free.
   */
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
    // One address by default has at most half of the places, however few there are.
    if (!isAddressShareDefault) return addressBounds
    const places = Math.min(limits.maxVisitors, this.#limit - this.#reserve)
    return narrowed(addressBounds, Math.max(1, Math.floor(places / 2)))
  }

  get #mostProvisional(): number {
    return Math.max(1, this.#reserve >> 1)
  }

  /** Counts free descriptors again, because others in this process also use them. */
  expired(): void {
    this.#host.deadlines.arm(this, CHECK_MS)
    this.#count()
    this.#keepSpare()
    for (const code of this.#refused.keys()) this.#report(code)
  }

  #count(): void {
    const limit = descriptorLimit() ?? Number.POSITIVE_INFINITY
    this.#limit = limit
    // Visitors have at least three of four descriptors, even if there are few.
    this.#reserve = Math.min(this.#host.limits.reservedDescriptors, Math.floor(limit / 4))
    const least = Math.max(this.#reserve, LAST_DESCRIPTORS)
    // Counts twice the needed number: the next count is due when half of them are used.
    const free = freeDescriptors(2 * least) ?? Number.POSITIVE_INFINITY
    this.#budget = free - least
    this.#isShort = this.#budget <= 0
    if (this.#isShort) this.#lastFree = free
  }

  /** Returns why there is no room for one more visitor. `last`: there is none for clients and operators either. */
  #shortage(): 'visitors' | 'descriptors' | 'last' | undefined {
    if (this.#budget <= 0) {
      // Counts exactly, which is cheap when few are free: this decides whether the next `accept` gets a descriptor.
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

  /** Closes an idle connection; the search begins with the one examined longest ago. */
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
   * Keeps a spare descriptor, because other code in this process may take the last one. Without any, `accept` fails
   * and the system offers the connection again at once, without limit: a core is busy and this code gets no event.
   * With the spare one closed, connections are accepted and cut.
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

  /** Reports at once, and then once a minute, so that a flood of connections causes no flood of events. */
  #report(code: Refusal): void {
    const count = this.#refused.get(code) ?? 0
    const now = performance.now()
    if (count === 0 || now - (this.#reportedAt.get(code) ?? -REPORT_MS) < REPORT_MS) return
    this.#reportedAt.set(code, now)
    this.#refused.set(code, 0)
    this.#host.failed(
      new TunnelError(code, `${this.#reason(code)} Connections refused since the last report: ${count}.`, {
        action: ERRORS[code].operator,
      }),
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
    // Uses the stored number: a million descriptors may be free by now, and counting them opens each one.
    return `${limit - this.#lastFree} of ${limit} descriptors are open, ${this.#reserve} are kept for the control host, and ${this.count} are visitors'.`
  }
}

const STAYING: Occupant = { giveWay: () => false }

/** A connection that the server counts until it is closed. */
export class AdmittedConnection {
  /** The address, in the form that the address counter uses. */
  key: string
  /** The reason why only the control host may serve it. */
  refusal: Refusal | undefined
  /** The object that uses the connection. Without one, the connection is cut if it takes too long to say what it wants. */
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

  /** Whether only the control host may serve the connection. Checks for room again, because others may have left. */
  isRefused(): boolean {
    if (this.refusal === undefined) return false
    if (!this.#admission.settle(this)) return true
    this.refusal = undefined
    return false
  }

  /**
   * Called when a proxy's header names the visitor. Returns `false` if that address has too many connections: then cut this one.
   */
  moveTo(address: string): boolean {
    const key = this.#admission.move(this, address)
    if (key === undefined) return false
    this.key = key
    return true
  }

  /**
   * Counts the beginning of a request on a connection that carries many. Returns the function to call at its end;
   * `undefined` if the address has too many in progress.
   */
  takesRequest(): (() => void) | undefined {
    return this.#admission.takesRequest(this)
  }

  /**
   * Counts a request that the visitor gave up, on a connection that carries many. Returns `false` if the address has
   * given up too many.
   */
  mayGiveUp(): boolean {
    return this.#admission.mayGiveUp(this)
  }

  /** Called when the connection ends with this many requests without a response. */
  gaveUp(count: number): void {
    this.#admission.gaveUp(this, count)
  }

  /** Allows the connection to be silent without limit. */
  stay(): void {
    this.occupant = STAYING
  }

  /** Called when the connection turns out to be a client's: it no longer counts as a visitor's. */
  release(): void {
    this.#admission.leave(this, false)
  }

  left(): void {
    this.#admission.leave(this, true)
  }

  /** Whether the connection has sent bytes, and is to be read next. */
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
