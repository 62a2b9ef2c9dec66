// The links that clients opened in addition to their carriers, before and while their sessions use them.

import { createHash, randomBytes } from 'node:crypto'
import { Link } from '../../session/link.ts'
import type { Session } from '../../session/session.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { Clock, Deadline } from '../contracts/clock.ts'

/** The time in milliseconds for the client to confirm that it has the response. */
const ANNOUNCE_MS = 10_000

/** Counts the links of a session where a limit is shared with other sessions. */
export interface LinkBudget {
  hasRoom(): boolean
  opened(): void
  closed(): void
}

const UNBOUNDED: LinkBudget = { hasRoom: () => true, opened() {}, closed() {} }

export class LinkRegistry {
  readonly #byHash = new Map<string, SessionLinks>()

  open(session: Session, deadlines: Clock, maxLinks: number, budget: LinkBudget = UNBOUNDED): SessionLinks {
    const secret = randomBytes(24).toString('base64url')
    const hash = hashOf(secret)
    const links = new SessionLinks(session, secret, deadlines, { maxLinks, budget }, () =>
      this.#byHash.delete(hash),
    )
    this.#byHash.set(hash, links)
    return links
  }

  /** Finds the links of a secret by its hash, so that the time of the search says nothing about other secrets. */
  find(secret: string): SessionLinks | undefined {
    return this.#byHash.get(hashOf(secret))
  }
}

export class SessionLinks {
  readonly secret: string
  readonly #session: Session
  readonly #deadlines: Clock
  readonly #bounds: LinkBounds
  readonly #closed: () => void
  readonly #announced = new Map<number, NewLink>()
  #count = 0

  constructor(session: Session, secret: string, deadlines: Clock, bounds: LinkBounds, closed: () => void) {
    this.#session = session
    this.secret = secret
    this.#deadlines = deadlines
    this.#bounds = bounds
    this.#closed = closed
  }

  get count(): number {
    return this.#count
  }

  hasRoomFor(number: number): boolean {
    const { links } = this.#session
    if (links.has(number) || this.#announced.has(number)) return false
    const { maxLinks, budget } = this.#bounds
    return number < 0x1_0000_0000 && this.#count < maxLinks && budget.hasRoom()
  }

  accept(number: number, socket: Socket): SocketHandler {
    const { budget } = this.#bounds
    const link = new Link(number, socket, this.#session.links, () => {
      this.#count--
      budget.closed()
    })
    this.#count++
    budget.opened()
    const waiting: NewLink = { link, dueTick: 0, expired: () => link.close() }
    this.#announced.set(number, waiting)
    this.#deadlines.watch(waiting)
    this.#deadlines.arm(waiting, ANNOUNCE_MS)
    return {
      ...link.socketHandler,
      closed: error => {
        // A later link may have the same number by now.
        if (this.#announced.get(number) === waiting) this.#forget(number)
        link.socketHandler.closed(error)
      },
    }
  }

  /** Called when the client has the response: both sides may now send on the link. `use` returns whether it can be used. */
  linked(number: number, use: (link: Link) => boolean = () => true): void {
    const waiting = this.#announced.get(number)
    if (waiting === undefined) return
    this.#forget(number)
    if (use(waiting.link)) this.#session.links.add(waiting.link)
    else waiting.link.close()
  }

  /**
   * Called when the client will put nothing more on the link and wants it closed. The server closes it, because it
   * knows when the link is not in use.
   */
  retired(number: number): void {
    this.#session.links.get(number)?.closeWhenIdle()
  }

  close(): void {
    for (const { link } of this.#announced.values()) link.close()
    this.#closed()
  }

  #forget(number: number): void {
    const waiting = this.#announced.get(number)
    if (waiting === undefined) return
    this.#announced.delete(number)
    this.#deadlines.forget(waiting)
  }
}

interface LinkBounds {
  readonly maxLinks: number
  readonly budget: LinkBudget
}

interface NewLink extends Deadline {
  readonly link: Link
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64')
}
