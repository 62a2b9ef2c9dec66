// A visitor's end of a lane on real sockets, without its thread: what it serves, what it hands back, and in which order.

import { afterAll, describe, expect, test } from 'bun:test'
import { Lane, type LaneOrder, LaneTools } from '../../src/accelerator/lane.ts'
import { SharedSlots } from '../../src/accelerator/shared-slots.ts'
import { canSplice } from '../../src/accelerator/threads.ts'
import { IN_BYTES, MAX_LANE_ANSWER_BYTES, MAX_LANE_FRAME_BYTES, Trunk } from '../../src/accelerator/trunk.ts'
import type { LaneTerms } from '../../src/accelerator.ts'
import { eventually } from '../support/events.ts'
import { get, ok, post } from '../support/exchange.ts'
import { HOST, laneTerms } from '../support/lane-terms.ts'
import { reset } from '../support/peer.ts'
import { arrived, FarEnd, fill, Heard, pair, testKernel, turning, turningAlone } from '../support/trunk.ts'

const SLOT = 3
const LANE = 7
const OTHER_LANE = 8

/** The head, and what is behind it. */
function split(message: string): readonly [head: string, body: string] {
  const at = message.indexOf('\r\n\r\n') + 4
  return [message.slice(0, at), message.slice(at)]
}

describe.skipIf(!canSplice())('a lane', () => {
  const closing: (() => void)[] = []
  afterAll(() => {
    for (const close of closing) close()
  })

  async function open(options: Partial<LaneTerms> = {}) {
    const [visitor, link] = [await pair(), await pair()]
    closing.push(visitor.close, link.close)
    const kernel = testKernel()
    const [slots, heard, terms] = [new SharedSlots(), new Heard(), { ...laneTerms(), ...options }]
    const trunk = new Trunk(kernel, link.descriptor, kernel.room(IN_BYTES), false)
    const { descriptor } = visitor
    const order: LaneOrder = { slot: SLOT, descriptor, trunk: 0, lane: LANE, terms }
    const lane = new Lane(order, terms, trunk, new LaneTools(kernel, slots, heard))
    const far = new FarEnd(link.peer)
    const seen = { atVisitor: '' }
    visitor.peer.on('data', bytes => (seen.atVisitor += bytes.toString('latin1')))

    /** Of the thread: after it, all that was there has been looked at. */
    function turn(): void {
      if (!lane.hasLeft) lane.changed(arrived(descriptor) === 'the last')
      trunk.changed(false)
      trunk.flush()
      if (trunk.isBroken) trunk.close()
    }
    const until = turning(turn)

    return {
      lane,
      trunk,
      descriptor,
      routingEpoch: terms.routingEpoch,
      slots,
      visitor: visitor.peer,
      far,
      heard,
      seen,
      turn,
      until,
      /** Has the visitor ask, until the far end was asked: what it got. */
      async asked(this: void, request = get(HOST, '/a')): Promise<string> {
        const before = far.of(LANE).length
        visitor.peer.write(request)
        await until(() => far.of(LANE).length > before, 'a request at the far end')
        return far.of(LANE).slice(before + 1)
      },
      /** Until the visitor has so much more. */
      async answered(this: void, answer: string): Promise<string> {
        const before = seen.atVisitor.length
        await until(() => seen.atVisitor.length >= before + answer.length, 'an answer at the visitor')
        return seen.atVisitor.slice(before)
      },
    }
  }

  test('serves an answer whose pieces follow one another, wherever it is cut', async () => {
    const { far, heard, asked, answered, slots } = await open()
    for (let cut = 1; cut < ok('body').length; cut++) {
      await asked()
      far.say(LANE, ok('body').slice(0, cut), ok('body').slice(cut))
      expect(await answered(ok('body'))).toBe(ok('body'))
    }
    await asked()
    far.say(LANE, ...ok('body').split(''))
    expect(await answered(ok('body'))).toBe(ok('body'))
    expect([heard.log, slots.counts(SLOT).requests]).toEqual([[], ok('body').length])
  })

  test('tells of each exchange that it served, if it shall', async () => {
    for (const isReported of [true, false]) {
      const { far, heard, asked, answered } = await open({ isReported })
      const answer = 'HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno'
      for (const path of ['/a?b=c', '/longer/than/that']) {
        await asked(get(HOST, path))
        far.say(LANE, answer)
        await answered(answer)
      }
      const told = heard.exchanges.map(({ target, status, bytes }) => ({ target, status, bytes }))
      const each = { status: 404, bytes: answer.length }
      expect(told).toEqual(
        isReported
          ? [
              { target: '/a?b=c', ...each },
              { target: '/longer/than/that', ...each },
            ]
          : [],
      )
      for (const { durationMs } of heard.exchanges) expect(durationMs).toBeGreaterThan(0)
    }
  })

  test('ends where more was told than anybody hears of, with the request unread', async () => {
    const { slots, far, heard, visitor, until } = await open({ isReported: true })
    slots.reported(1_024)
    visitor.write(get(HOST, '/a'))
    await until(() => heard.isOver, 'the end')
    expect(heard.request).toBeUndefined()
    await until(() => far.of(LANE) !== '', 'the last word')
    expect(far.of(LANE)).toBe('|')
    slots.seen(1)
    expect(slots.isBacklogFull).toBe(false)
  })

  test('forwards a request and its answer, and counts both', async () => {
    const { lane, slots, far, heard, asked, answered, until } = await open()
    let requestBytes = 0
    for (let count = 1; count <= 3; count++) {
      const request = await asked()
      expect(request).toStartWith(`GET /a HTTP/1.1\r\nHost: ${HOST}\r\nX-Forwarded-For: 192.0.2.1\r\n`)
      expect(request).toEndWith('\r\n\r\n')
      requestBytes += request.length
      far.say(LANE, ok('body'))
      expect(await answered(ok('body'))).toBe(ok('body'))
      expect(slots.counts(SLOT)).toEqual({
        requests: count,
        bytesIn: count * get(HOST, '/a').length,
        bytesOut: count * ok('body').length,
        unreported: { requests: count, errors: 0, bytes: count * ok('body').length },
      })
    }
    expect(heard.log).toEqual([])
    lane.finish()
    expect(heard.end).toEqual({
      sentBytes: requestBytes,
      receivedBytes: 3 * ok('body').length,
      hasFailed: false,
      isTorn: false,
      request: undefined,
      isAsked: false,
      unsent: undefined,
    })
    await until(() => far.of(LANE).endsWith('|'), 'the last word')
  })

  test('a body that came whole with its head goes with it, whatever the method', async () => {
    const { slots, far, heard, asked, answered } = await open({ isReported: true })
    const requests = [
      post(HOST, 'body', '/a'),
      post(HOST, 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n', '/b').replace('POST', 'PUT'),
      post(HOST, '', '/c'),
      get(HOST, '/d', 'Content-Length: 3\r\n').concat('abc'),
      post(HOST, 'x'.repeat(16_000), '/e').replace('POST', 'MADE-UP'),
    ]
    for (const request of requests) {
      const [head, body] = split(request)
      const sent = split(await asked(request))
      expect(sent[0]).toStartWith(head.slice(0, -2))
      expect(sent[1]).toBe(body)
      far.say(LANE, ok('done'))
      expect(await answered(ok('done'))).toBe(ok('done'))
    }
    expect(heard.log).toEqual([])
    expect(heard.exchanges.map(({ method, target }) => `${method} ${target}`)).toEqual(
      requests.map(request => request.slice(0, request.indexOf(' HTTP'))),
    )
    expect(heard.exchanges.map(({ requestBytes }) => requestBytes)).toEqual(
      requests.map(({ length }) => length),
    )
    expect(slots.counts(SLOT).bytesIn).toBe(requests.join('').length)
  })

  test('a body that is not whole, or not alone, or of another kind, is handed back unsent', async () => {
    const request = post(HOST, 'body', '/a')
    const chunked = 'Transfer-Encoding: chunked\r\n'
    const strange = [
      `${request}G`,
      request.slice(0, 7),
      request + get(HOST, '/smuggled'),
      post(HOST, 'x'.repeat(16_384), '/a'),
      `${get(HOST, '/a', chunked)}0\r\n\r\n`,
      post(HOST, '0\r\n\r\n', '/a', chunked),
      post(HOST, 'body', '/a', 'Content-Length: 5\r\n'),
      post(HOST, 'body', '/a', 'Content-Length: 4\r\n'),
      request.replace('Length: 4', 'Length: +4'),
      request.replace('Length: 4', 'Length: 4, 4'),
      request.replace('HTTP/1.1', 'HTTP/1.0'),
      post(HOST, 'body', '/a', 'Expect: 100-continue\r\n'),
      post(HOST, 'body', '/a', 'Connection: close\r\n'),
      request.replace('POST', 'HEAD'),
    ]
    for (const bytes of strange) {
      const { far, heard, visitor, until } = await open()
      visitor.write(bytes)
      await until(() => far.of(LANE) !== '', 'the last word')
      expect([bytes, far.of(LANE)]).toEqual([bytes, '|'])
      expect(heard.request).toBe(bytes.slice(0, 16_384))
      expect(heard.end).toMatchObject({ isAsked: false, sentBytes: 0 })
    }
  })

  test('takes a body in one piece behind its head, and hands one in two back', async () => {
    const request = post(HOST, 'body', '/a')
    const { far, heard, visitor, descriptor, turn, asked, answered } = await open()
    const say = async (piece: string) => {
      visitor.write(piece)
      await eventually(() => arrived(descriptor) === 'bytes', 'a piece')
      turn()
    }
    for (let cut = request.length - 4; cut < request.length; cut++) {
      await say(request.slice(0, cut))
      expect(arrived(descriptor)).toBe('nothing')
      const sent = await asked(request.slice(cut))
      expect(sent).toStartWith(request.slice(0, request.indexOf('\r\n\r\n')))
      expect(sent).toEndWith('\r\n\r\nbody')
      far.say(LANE, ok('done'))
      expect(await answered(ok('done'))).toBe(ok('done'))
    }
    expect(heard.log).toEqual([])
    await say(request.slice(0, -2))
    await say(request.slice(-2, -1))
    expect(heard.log).toEqual(['over'])
    expect(heard.request).toBe(request.slice(0, -1))
    expect(heard.end?.isAsked).toBe(false)
  })

  test('stopped between two pieces of a request, or with nothing behind the first, it hands that one back', async () => {
    const piece = post(HOST, 'body', '/a').slice(0, -1)
    for (const isLast of [false, true]) {
      const { lane, far, heard, visitor, descriptor, until, turn } = await open()
      if (isLast) visitor.end(piece)
      else visitor.write(piece)
      await eventually(() => arrived(descriptor) === (isLast ? 'the last' : 'bytes'), 'a piece')
      turn()
      if (!isLast) lane.finish()
      expect(heard.log).toEqual(['over'])
      expect(heard.request).toBe(piece)
      expect(heard.end).toMatchObject({ isAsked: false, sentBytes: 0 })
      await until(() => far.of(LANE) !== '', 'the last word')
      expect(far.of(LANE)).toBe('|')
    }
  })

  test('bodies may be kept to those of the program: above a bound, or all that is not a plain GET', async () => {
    const limits = { ...laneTerms().limits, maxBodyBytes: 4 }
    for (const [terms, easy, hard] of [
      [{ limits }, post(HOST, 'body'), post(HOST, 'body!')],
      [{ isForGets: true }, get(HOST), post(HOST, 'body')],
      [{ isForGets: true }, get(HOST), get(HOST, '/', 'Content-Length: 1\r\n').concat('a')],
      [{ isForGets: true }, get(HOST), get(HOST).replace('GET', 'DELETE')],
    ] as const) {
      const { far, heard, visitor, asked, answered, until } = await open(terms)
      await asked(easy)
      far.say(LANE, ok('done'))
      await answered(ok('done'))
      visitor.write(hard)
      await until(() => heard.isOver, 'the end')
      expect(heard.request).toBe(hard)
      expect(heard.end).toMatchObject({ isAsked: false })
    }
  })

  test('stopped in the middle, it hands a request with its body back as one that was asked', async () => {
    const { lane, heard, asked } = await open()
    const sent = await asked(post(HOST, 'body', '/a'))
    lane.finish()
    expect(heard.request).toBe(post(HOST, 'body', '/a'))
    expect(heard.end).toMatchObject({ isAsked: true, isTorn: false, sentBytes: sent.length })
  })

  test('takes no request any more once it may have to go elsewhere', async () => {
    const { routingEpoch, visitor, far, heard, until } = await open()
    Atomics.add(routingEpoch, 0, 1)
    visitor.write(get(HOST, '/a'))
    await until(() => far.of(LANE) !== '', 'the last word')
    expect(far.of(LANE)).toBe('|')
    expect(heard.request).toBe(get(HOST, '/a'))
    expect(heard.end).toMatchObject({ sentBytes: 0, isAsked: false, hasFailed: false, isTorn: false })
  })

  test('still brings the answer of one that it took before', async () => {
    const { routingEpoch, far, heard, asked, answered } = await open()
    await asked()
    Atomics.add(routingEpoch, 0, 1)
    far.say(LANE, ok('body'))
    expect(await answered(ok('body'))).toBe(ok('body'))
    expect(heard.log).toEqual([])
  })

  test('stopped in the middle, it hands the request back as one that was asked', async () => {
    const { lane, heard, asked } = await open()
    const request = await asked()
    lane.finish()
    expect(heard.request).toBe(get(HOST, '/a'))
    expect(heard.end).toMatchObject({ isAsked: true, isTorn: false, sentBytes: request.length })
  })

  test('an answer that nobody asked for reaches nobody', async () => {
    const { far, heard, seen, until } = await open()
    far.say(LANE, ok('poison'))
    await until(() => heard.isOver, 'the end')
    expect(heard.log).toEqual(['over', `more ${ok('poison')}`])
    expect(heard.end).toMatchObject({ isAsked: false, request: undefined, receivedBytes: 0 })
    expect(seen.atVisitor).toBe('')
  })

  test('two answers to one request: the visitor gets neither from it', async () => {
    const { slots, far, heard, seen, asked, until } = await open()
    await asked()
    far.say(LANE, ok('one') + ok('two'))
    await until(() => heard.isOver, 'the end')
    expect(heard.log).toEqual(['over', `more ${ok('one')}${ok('two')}`])
    expect(heard.request).toBe(get(HOST, '/a'))
    expect(heard.end).toMatchObject({ isAsked: true, receivedBytes: 0 })
    expect(seen.atVisitor).toBe('')
    expect(slots.counts(SLOT).requests).toBe(0)
  })

  /** Within the head, right behind it, and within the body. */
  const CUTS = [20, ok('').length, ok('body').length - 2]

  test('an answer whose rest does not follow at once: the visitor gets none of it from the lane', async () => {
    for (const cut of CUTS) {
      const { lane, far, heard, seen, asked, until } = await open()
      const [piece, rest] = [ok('body').slice(0, cut), ok('body').slice(cut)]
      await asked()
      far.say(LANE, piece)
      await until(() => lane.heldSince > 0, 'the beginning of an answer')
      expect([heard.log, seen.atVisitor]).toEqual([[], ''])
      // As the thread does it.
      lane.finish()
      expect(heard.log).toEqual(['over', `more ${piece}`])
      far.say(LANE, rest)
      await until(() => heard.log.length === 3, 'the rest')
      expect(heard.log.at(-1)).toBe(`more ${rest}`)
      expect(heard.end).toMatchObject({ isAsked: true, receivedBytes: 0 })
      expect(seen.atVisitor).toBe('')
    }
  })

  /** Pieces as a trunk carries them, the first one of `first` bytes. */
  function frames(bytes: string, first: number): string[] {
    const pieces = [bytes.slice(0, first)]
    for (let at = first; at < bytes.length; at += MAX_LANE_FRAME_BYTES)
      pieces.push(bytes.slice(at, at + MAX_LANE_FRAME_BYTES))
    return pieces
  }

  test('an answer in pieces that is too long: all of it is handed back, in its order', async () => {
    const head = 'HTTP/1.1 200 OK\r\n'
    const long = `${head}Content-Length: ${MAX_LANE_ANSWER_BYTES}\r\n\r\n${'x'.repeat(65_536)}`
    const chunk = `10000\r\n${'y'.repeat(65_536)}\r\n`
    const chunks = `${head}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(3)}`
    // Parsed anew with each piece.
    const begun = `${head}Transfer-Encoding: chunked\r\n\r\n1d000\r\n${'y'.repeat(60_000)}`
    const drip = [begun, ...Array.from({ length: 10 }, () => 'y')]
    // With the longest head that is allowed here, and no room for it in front of a body.
    const wide = `${head}X-Wide: ${'z'.repeat(MAX_LANE_FRAME_BYTES)}\r\nContent-Length: 2\r\n\r\nok`
    for (const pieces of [frames(long, 50), frames(chunks, MAX_LANE_FRAME_BYTES), drip, frames(wide, 50)]) {
      const limits = { ...laneTerms().limits, maxHeadBytes: 2 * MAX_LANE_FRAME_BYTES }
      const { far, heard, seen, asked, until } = await open({ limits })
      await asked()
      far.say(LANE, ...pieces)
      const all = pieces.join('')
      await until(() => heard.moreText.length >= all.length, 'all of it')
      expect(heard.log[0]).toBe('over')
      expect(heard.moreText === all).toBe(true)
      expect([heard.end?.receivedBytes, heard.end?.isAsked, seen.atVisitor]).toEqual([0, true, ''])
    }
  })

  test('a long answer is sent whole, however it is cut; behind some of them in a row the lane ends', async () => {
    const { far, heard, seen, asked, answered, slots } = await open()
    const sizes = [65_536, 100_000, 20, 130_000, 32_769, 0, 99_999, 100_000]
    for (const [count, size] of [...sizes, 70_000].entries()) {
      const answer = ok(String(count).padEnd(size, String(count)))
      await asked()
      expect(heard.log).toEqual([])
      far.say(LANE, ...frames(answer, count % 2 === 0 ? 30 : 40_000))
      expect((await answered(answer)) === answer).toBe(true)
    }
    expect(heard.log).toEqual(['over'])
    expect(heard.end).toMatchObject({
      isAsked: false,
      request: undefined,
      unsent: undefined,
      hasFailed: false,
    })
    expect(heard.end?.receivedBytes).toBe(seen.atVisitor.length)
    expect(slots.counts(SLOT)).toMatchObject({ requests: sizes.length + 1, bytesOut: seen.atVisitor.length })
  })

  test('the time in which an answer has to be whole counts from its first piece', async () => {
    const { lane, far, asked, until } = await open()
    await asked()
    far.say(LANE, ok('body').slice(0, 20))
    await until(() => lane.heldSince > 0, 'the first piece')
    const first = lane.heldSince
    far.say(LANE, ok('body').slice(20, 25))
    await until(() => lane.heldSince > first, 'the second piece')
    expect(lane.heldFrom).toBe(first)
  })

  test('a long answer whose end does not come: the visitor gets none of it from the lane', async () => {
    for (const isTorn of [false, true]) {
      const { far, heard, seen, asked, until } = await open()
      const [piece = '', next = ''] = frames(ok('x'.repeat(120_000)), 40)
      await asked()
      far.say(LANE, piece, next)
      if (isTorn) await until(() => far.peer.bytesWritten > next.length, 'its beginning')
      if (isTorn) reset(far.peer)
      else far.leave(LANE)
      await until(() => heard.isBack, 'its way back')
      expect(seen.atVisitor).toBe('')
      expect(heard.end).toMatchObject({ isAsked: true, receivedBytes: 0 })
      if (isTorn) expect((piece + next).startsWith(heard.moreText)).toBe(true)
      else expect(heard.moreText === piece + next).toBe(true)
      expect(heard.log.at(-1)).toBe(isTorn ? 'back torn' : 'back')
    }
  })

  test('an answer of which the other side leaves the rest to the carrier', async () => {
    const { far, heard, seen, asked, until } = await open()
    await asked()
    const piece = ok('body').slice(0, 30)
    far.say(LANE, piece)
    far.leave(LANE)
    await until(() => heard.isBack, 'its way back')
    expect(heard.log).toEqual(['over', `more ${piece}`, 'back'])
    expect([heard.end?.isAsked, seen.atVisitor]).toEqual([true, ''])
  })

  test('says that the visitor broke: before it asked', async () => {
    const { visitor, heard, until } = await open()
    reset(visitor)
    await until(() => heard.isOver, 'the end')
    expect(heard.end).toMatchObject({ hasFailed: true, isTorn: false, request: undefined })
  })

  test('says that the visitor broke: before it was answered', async () => {
    const { visitor, descriptor, far, heard, asked, until } = await open()
    await asked()
    reset(visitor)
    await eventually(() => !testKernel().isConnected(descriptor), 'the reset')
    far.say(LANE, ok('body'))
    await until(() => heard.isOver, 'the end')
    expect(heard.end).toMatchObject({ hasFailed: true, isTorn: false })
  })

  test('a visitor that is gone when its answer comes was served once, and nothing of it is left over', async () => {
    const { lane, slots, far, heard, asked, visitor, descriptor, trunk } = await open({ isReported: true })
    await asked()
    reset(visitor)
    await eventually(() => !testKernel().isConnected(descriptor), 'the reset')
    far.say(LANE, ok('body'))
    await turningAlone(trunk)(() => heard.isOver, 'the end')
    expect(heard.end).toMatchObject({
      hasFailed: true,
      isAsked: false,
      request: undefined,
      unsent: undefined,
    })
    expect([lane.requests, slots.counts(SLOT).requests, heard.exchanges.length]).toEqual([1, 1, 1])
  })

  test('a visitor that asks and sends no more gets its answer first', async () => {
    const { lane, trunk, visitor, descriptor, far, heard, seen } = await open()
    visitor.end(get(HOST, '/a'))
    await eventually(() => arrived(descriptor) === 'the last', 'request and end')
    // One change for both, and none after it.
    lane.changed(true)
    trunk.flush()
    await eventually(() => far.of(LANE) !== '', 'the request')
    expect(heard.log).toEqual([])
    far.say(LANE, ok('body'))
    await eventually(() => {
      trunk.changed(false)
      return seen.atVisitor === ok('body')
    }, 'the answer')
    expect(heard.log).toEqual(['over'])
    expect(heard.end).toMatchObject({ hasFailed: false, request: undefined, isAsked: false })
  })

  test('a trunk that breaks tears it: in the middle of a request', async () => {
    const { far, heard, asked, until } = await open()
    await asked()
    reset(far.peer)
    await until(() => heard.isBack, 'the end')
    expect(heard.log).toEqual(['over', 'back torn'])
    expect(heard.end).toMatchObject({ isTorn: true, isAsked: true, hasFailed: false })
    expect(heard.request).toBe(get(HOST, '/a'))
  })

  test('a trunk that breaks tears it: after it left', async () => {
    const { lane, far, heard, asked, until } = await open()
    await asked()
    lane.finish()
    await until(() => far.of(LANE).endsWith('|'), 'the last word')
    expect(heard.end).toMatchObject({ isTorn: false })
    reset(far.peer)
    await until(() => heard.isBack, 'the end')
    expect(heard.log).toEqual(['over', 'back torn'])
  })

  test('a trunk that is full: the request stays where it is until there is room', async () => {
    const { trunk, descriptor, visitor, far, heard, turn } = await open()
    far.peer.pause()
    fill(trunk, OTHER_LANE)
    visitor.write(get(HOST, '/a'))
    await eventually(() => arrived(descriptor) === 'bytes', 'the request')
    turn()
    expect(arrived(descriptor)).toBe('bytes')
    expect(heard.log).toEqual([])
    far.peer.resume()
    await turningAlone(trunk)(() => far.of(LANE) !== '', 'the request at the far end')
    expect(far.of(LANE)).toStartWith('|GET /a HTTP/1.1\r\n')
    expect(arrived(descriptor)).toBe('nothing')
    expect(heard.log).toEqual([])
  })

  test('stopped while the trunk is full, it has nothing to hand back: the request is still there', async () => {
    const { lane, trunk, descriptor, visitor, far, heard, turn, until } = await open()
    far.peer.pause()
    fill(trunk, OTHER_LANE)
    visitor.write(get(HOST, '/a'))
    await eventually(() => arrived(descriptor) === 'bytes', 'the request')
    turn()
    lane.finish()
    expect(heard.end).toMatchObject({ request: undefined, isAsked: false, sentBytes: 0 })
    far.peer.resume()
    await until(() => far.of(LANE) !== '', 'the last word')
    expect(far.of(LANE)).toBe('|')
    expect(arrived(descriptor)).toBe('bytes')
  })

  test('what comes after it left is told in order, and its way back behind the last word', async () => {
    const { lane, far, heard, asked, until, turn } = await open()
    await asked()
    lane.finish()
    far.say(LANE, 'one', 'two')
    await until(() => heard.log.length === 3, 'two pieces')
    far.say(LANE, 'three')
    await until(() => heard.log.length === 4, 'a third')
    turn()
    expect(heard.log).toEqual(['over', 'more one', 'more two', 'more three'])
    far.leave(LANE)
    await until(() => heard.isBack, 'its way back')
    expect(heard.log.slice(4)).toEqual(['back'])
  })

  test('who says more to it than an answer can be, after it left, loses the trunk', async () => {
    const { lane, trunk, far, heard, until } = await open()
    lane.finish()
    for (let count = 0; count < 4; count++) far.say(LANE, 'a'.repeat(MAX_LANE_FRAME_BYTES))
    await until(() => heard.moreText.length === 2 * MAX_LANE_ANSWER_BYTES, 'as much as it can be')
    expect(trunk.isBroken).toBe(false)
    far.say(LANE, 'a')
    await until(() => heard.isBack, 'the end')
    expect(heard.moreText.length).toBe(2 * MAX_LANE_ANSWER_BYTES)
    expect(heard.log.at(-1)).toBe('back torn')
  })

  test('a last word that comes unasked ends it', async () => {
    const { far, heard, until } = await open()
    far.leave(LANE)
    await until(() => heard.isBack && far.of(LANE) !== '', 'the end')
    expect(heard.log).toEqual(['over', 'back'])
    expect(heard.end).toMatchObject({ isAsked: false, isTorn: false, request: undefined })
    expect(far.of(LANE)).toBe('|')
  })

  test('a last word in place of an answer: the request is handed back as one that was asked', async () => {
    const { far, heard, asked, until } = await open()
    await asked()
    far.leave(LANE)
    await until(() => heard.isBack, 'the end')
    expect(heard.log).toEqual(['over', 'back'])
    expect(heard.end).toMatchObject({ isAsked: true, isTorn: false })
    expect(heard.request).toBe(get(HOST, '/a'))
  })

  test.each([
    [30_000, 30_000],
    [30_000, 125_000],
  ])(
    'an answer that the visitor does not take whole: the rest is handed back (%d, %d bytes)',
    async (first, second) => {
      const { slots, visitor, far, heard, seen, asked, until } = await open()
      visitor.pause()
      let answers = ''
      while (!heard.isOver) {
        const served = slots.counts(SLOT).requests
        const answer = ok(String(answers.length).padEnd(served % 2 === 0 ? first : second, '.'))
        answers += answer
        await asked()
        far.say(LANE, ...frames(answer, MAX_LANE_FRAME_BYTES))
        await until(() => slots.counts(SLOT).requests > served, 'the answer')
      }
      expect(heard.end).toMatchObject({ request: undefined, isAsked: false, hasFailed: false })
      expect(heard.end?.receivedBytes).toBe(answers.length)
      const { unsent = '' } = heard
      expect(unsent).not.toBe('')
      expect(unsent.length).toBeLessThanOrEqual(ok('x'.repeat(second)).length)
      visitor.resume()
      await eventually(() => seen.atVisitor.length >= answers.length - unsent.length, 'what was taken')
      expect(seen.atVisitor + unsent === answers).toBe(true)
    },
  )
})
