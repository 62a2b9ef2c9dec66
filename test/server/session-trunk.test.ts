// When a server asks a client for the connection that lanes share, and when it does not.

import { afterEach, expect, mock, spyOn, test } from 'bun:test'
import type { Trunk } from '../../src/accelerator.ts'
import { eventLoop } from '../../src/event-loop.ts'
import { SessionTrunk } from '../../src/parts/lanes/session-trunk.ts'
import { Link } from '../../src/session/link.ts'
import { Loner } from '../support/sessions.ts'
import { WireEnd } from '../support/wires.ts'

const TRUNK: Trunk = { nextLane: () => 0, enter: () => undefined, refuse() {} }

afterEach(() => mock.restore())

/** A session that wants a trunk, on a clock of the test. */
class Wanting {
  asked = 0
  #now = 1_000
  readonly trunk: SessionTrunk

  constructor(openTrunk: () => Trunk | undefined = () => TRUNK) {
    this.trunk = new SessionTrunk({ sendControl: () => this.asked++ } as never, { openTrunk }) // only this is asked
    this.after(0)
  }

  /** Time passes, and a trunk is wanted. Returns whether the client was asked. */
  after(ms: number, mayAsk = true): boolean {
    this.#now += ms
    spyOn(eventLoop, 'now').mockReturnValue(this.#now)
    const before = this.asked
    if (mayAsk) this.trunk.request()
    return this.asked > before
  }
}

function link(): Link {
  const { session } = new Loner('server')
  const made = new Link(1, new WireEnd(1000), session.links)
  session.links.add(made)
  return made
}

test('a client that says that it opens none is not asked any more', () => {
  const wanting = new Wanting()
  wanting.trunk.refused(undefined)
  expect(wanting.after(86_400_000)).toBe(false)
})

test('a client that says when it may be asked again is asked then, and never before the pause is over', () => {
  const wanting = new Wanting()
  wanting.trunk.refused(5_000)
  expect(wanting.after(4_999)).toBe(false)
  expect(wanting.after(1)).toBe(true)
  wanting.trunk.refused(0)
  expect(wanting.after(199)).toBe(false)
  expect(wanting.after(1)).toBe(true)
})

test('a trunk that was lost is asked for at once, one that cannot be opened is not used', () => {
  const openings: (Trunk | undefined)[] = [undefined, TRUNK]
  const wanting = new Wanting(() => openings.shift())
  expect([wanting.trunk.take(link()), wanting.trunk.current]).toEqual([false, undefined])
  const opened = link()
  expect([wanting.trunk.take(opened), wanting.trunk.current?.link]).toEqual([true, opened])
  opened.close()
  expect(wanting.trunk.current).toBeUndefined()
  expect(wanting.after(0)).toBe(true)
})
