// The app's end of a lane on real sockets, without its thread: what it moves, what it leaves, and what it hands back.

import { afterAll, describe, expect, test } from 'bun:test'
import { AppLane } from '../../src/accelerator/app-lane.ts'
import { type LaneOrder, type LaneSide, LaneTools } from '../../src/accelerator/lane.ts'
import { SharedSlots } from '../../src/accelerator/shared-slots.ts'
import { canSplice } from '../../src/accelerator/threads.ts'
import { IN_BYTES, MAX_LANE_ANSWER_BYTES, MAX_LANE_FRAME_BYTES, Trunk } from '../../src/accelerator/trunk.ts'
import { eventually } from '../support/events.ts'
import { get, ok } from '../support/exchange.ts'
import { reset } from '../support/peer.ts'
import { Random } from '../support/random.ts'
import {
  arrived,
  FarEnd,
  fill,
  Guest,
  Heard,
  pair,
  readAll,
  roomOf,
  testKernel,
  turning,
  turningAlone,
} from '../support/trunk.ts'

const LANE = 7
const OTHER_LANE = 8
const REQUEST = get('app.localhost', '/a')

/** What it looks like matters nowhere but in a comparison. */
const text = (length: number, seed = 1) => Buffer.from(new Random(seed).bytes(length)).toString('latin1')

describe.skipIf(!canSplice())("an app's end of a lane", () => {
  const closing: (() => void)[] = []
  afterAll(() => {
    for (const close of closing) close()
  })

  async function open({ isRefused = false, early }: { isRefused?: boolean; early?: string[] } = {}) {
    const [app, link] = [await pair(), await pair()]
    closing.push(app.close, link.close)
    const kernel = testKernel()
    const heard = new Heard()
    const trunk = new Trunk(kernel, link.descriptor, kernel.room(IN_BYTES), true)
    const far = new FarEnd(link.peer)
    if (early !== undefined) {
      far.say(LANE, ...early)
      await eventually(() => arrived(link.descriptor) === 'bytes', 'what comes early')
      trunk.changed(false)
    }
    const descriptor = isRefused ? -1 : app.descriptor
    const order: LaneOrder = { slot: 0, descriptor, trunk: 0, lane: LANE, terms: undefined }
    const lane = new AppLane(order, trunk, new LaneTools(kernel, new SharedSlots(), heard))
    if (isRefused) lane.finish()
    trunk.begin(lane)
    const seen = { atApp: '' }
    app.peer.on('data', bytes => (seen.atApp += bytes.toString('latin1')))

    /** Of the thread. The app's connection is only looked at if something is there. */
    function turn(): void {
      if (!isRefused && !lane.hasLeft && arrived(descriptor) !== 'nothing') lane.changed(false)
      trunk.changed(false)
      trunk.flush()
      if (trunk.isBroken) trunk.close()
    }
    const until = turning(turn)

    return {
      lane,
      trunk,
      descriptor,
      app: app.peer,
      far,
      heard,
      seen,
      turn,
      until,
      /** Frames for the lane, until they were looked at. */
      async asked(this: void, ...requests: string[]): Promise<void> {
        const guest = new Guest(trunk, OTHER_LANE)
        far.say(LANE, ...requests)
        far.say(OTHER_LANE, 'behind them')
        await until(() => guest.log.length > 0, 'what comes behind the request')
      },
    }
  }

  const untilLastWord = ({ far, until }: Awaited<ReturnType<typeof open>>) =>
    until(() => far.frames.some(({ lane, bytes }) => lane === LANE && bytes.length === 0), 'the last word')

  test('moves requests and answers, and counts both', async () => {
    const { lane, app, far, heard, seen, until, asked } = await open()
    for (let count = 1; count <= 3; count++) {
      await asked(REQUEST)
      await until(() => seen.atApp === REQUEST.repeat(count), 'the request at the app')
      app.write(ok('body'))
      await until(() => far.of(LANE) === `|${ok('body')}`.repeat(count), 'the answer at the far end')
    }
    expect(heard.log).toEqual([])
    lane.finish()
    expect(heard.end).toEqual({
      sentBytes: 3 * ok('body').length,
      receivedBytes: 3 * REQUEST.length,
      hasFailed: false,
      isTorn: false,
      request: undefined,
      isAsked: false,
      unsent: undefined,
    })
  })

  test('gives the app what came before it began', async () => {
    const { heard, seen, until } = await open({ early: [REQUEST] })
    await until(() => seen.atApp === REQUEST, 'the request at the app')
    expect(heard.log).toEqual([])
  })

  test('an answer that is too long ends it: the rest stays in the kernel', async () => {
    const here = await open()
    const { app, descriptor, far, heard, asked, until } = here
    const answer = text(MAX_LANE_ANSWER_BYTES + 30_000)
    await asked(REQUEST)
    app.write(answer.slice(0, 40_000), 'latin1')
    await until(() => far.of(LANE).length > 40_000, 'its beginning')
    app.write(answer.slice(40_000), 'latin1')
    await untilLastWord(here)
    const passed = Buffer.concat(far.frames.filter(({ lane }) => lane === LANE).map(({ bytes }) => bytes))
    expect(passed.length).toBe(MAX_LANE_ANSWER_BYTES)
    expect(heard.log).toEqual(['over'])
    expect(heard.end).toMatchObject({ sentBytes: MAX_LANE_ANSWER_BYTES, hasFailed: false })
    let rest = ''
    await eventually(() => {
      rest += readAll(descriptor).toString('latin1')
      return rest.length >= 30_000
    }, 'the rest')
    expect(passed.toString('latin1') + rest === answer).toBe(true)
  })

  test('an answer of so much as a lane may carry ends it as well: nobody knows that it is whole', async () => {
    const here = await open()
    await here.asked(REQUEST)
    here.app.write(text(MAX_LANE_ANSWER_BYTES), 'latin1')
    await untilLastWord(here)
    expect(here.heard.end).toMatchObject({ sentBytes: MAX_LANE_ANSWER_BYTES, hasFailed: false })
  })

  test('so much may come in answer to each request', async () => {
    const { app, far, heard, until, asked } = await open()
    const passed = () =>
      far.frames
        .filter(({ lane }) => lane === LANE)
        .map(({ bytes }) => bytes.toString('latin1'))
        .join('')
    let answers = ''
    for (let count = 1; count <= 3; count++) {
      await asked(REQUEST)
      const answer = text(MAX_LANE_ANSWER_BYTES - 1, count)
      answers += answer
      app.write(answer, 'latin1')
      await until(() => passed().length >= answers.length, 'the answer')
    }
    expect(heard.log).toEqual([])
    expect(passed() === answers).toBe(true)
  })

  test('an app that ends: the program hears of it once more', async () => {
    const here = await open()
    const { app, descriptor, far, heard, asked, until } = here
    await asked(REQUEST)
    app.write(ok('body'))
    await until(() => far.of(LANE) !== '', 'the answer')
    app.end()
    await untilLastWord(here)
    expect(far.of(LANE)).toBe(`|${ok('body')}|`)
    expect(heard.log).toEqual(['over'])
    expect(heard.end).toMatchObject({ hasFailed: false, isTorn: false, sentBytes: ok('body').length })
    expect(testKernel().receive(descriptor, testKernel().room(1))).toBe(0)
  })

  test('an app that answers and ends, with one change for both', async () => {
    const { lane, trunk, app, descriptor, far, heard, asked } = await open()
    await asked(REQUEST)
    app.end(ok('body'))
    await eventually(() => arrived(descriptor) === 'the last', 'answer and end')
    const end: LaneSide = lane
    end.changed(true)
    trunk.flush()
    await eventually(() => far.of(LANE) !== '', 'the answer')
    expect(heard.log).toEqual(['over'])
    expect(heard.end).toMatchObject({ hasFailed: false, sentBytes: ok('body').length })
  })

  test('an app that resets', async () => {
    const here = await open()
    const { app, heard, asked } = here
    await asked(REQUEST)
    reset(app)
    await untilLastWord(here)
    expect(heard.log).toEqual(['over'])
    expect(heard.end).toMatchObject({ hasFailed: true, isTorn: false })
  })

  test('an app that is gone when it is asked: the request is handed back', async () => {
    const { app, descriptor, far, trunk, heard } = await open()
    reset(app)
    await eventually(() => !testKernel().isConnected(descriptor), 'the reset')
    far.say(LANE, REQUEST)
    // Not of the app: the thread may hear of the request first.
    await eventually(() => {
      trunk.changed(false)
      return heard.log.length === 2
    }, 'the request')
    expect(heard.log).toEqual(['over', `more ${REQUEST}`])
    expect(heard.end).toMatchObject({ hasFailed: true, receivedBytes: 0 })
  })

  test('an app that is full: what it did not take is handed back', async () => {
    const { app, heard, seen, asked } = await open()
    app.pause()
    let requests = ''
    for (let count = 1; !heard.isOver; count++) {
      const request = text(60_000, count)
      requests += request
      await asked(request)
    }
    expect(heard.end).toMatchObject({ hasFailed: false })
    expect(heard.moreText).not.toBe('')
    expect(heard.end?.receivedBytes).toBe(requests.length - heard.moreText.length)
    app.resume()
    await eventually(() => seen.atApp.length + heard.moreText.length >= requests.length, 'what was taken')
    expect(seen.atApp + heard.moreText === requests).toBe(true)
  })

  test('one that is refused hands back everything, and what came before it as well', async () => {
    const here = await open({ isRefused: true, early: ['early'] })
    const { far, heard, asked, until } = here
    expect(heard.log).toEqual(['over', 'more early'])
    expect(heard.end).toMatchObject({ sentBytes: 0, receivedBytes: 0, hasFailed: false, isTorn: false })
    await untilLastWord(here)
    await asked('late', 'later')
    expect(heard.log.slice(2)).toEqual(['more late', 'more later'])
    far.leave(LANE)
    await until(() => heard.isBack, 'its way back')
    expect(heard.log.slice(4)).toEqual(['back'])
    expect(far.of(LANE)).toBe('|')
  })

  test('one that is refused is back at once when the other side has left already', async () => {
    const { heard, trunk } = await open({ isRefused: true, early: [REQUEST, ''] })
    expect(heard.log).toEqual(['over', `more ${REQUEST}`, 'back'])
    expect(trunk.endpoints.size).toBe(0)
  })

  test('what comes after it left is handed back, and its way back told behind the last word', async () => {
    const { lane, descriptor, far, heard, seen, asked, until } = await open()
    await asked(REQUEST)
    await until(() => seen.atApp === REQUEST, 'the request at the app')
    lane.finish()
    await asked('one', 'two')
    expect(heard.log).toEqual(['over', 'more one', 'more two'])
    far.leave(LANE)
    await until(() => heard.isBack, 'its way back')
    expect(heard.log.slice(3)).toEqual(['back'])
    // Nothing of it went to the app meanwhile.
    testKernel().send(descriptor, roomOf(Buffer.from('behind')), 6)
    await eventually(() => seen.atApp.endsWith('behind'), 'what the program sends')
    expect(seen.atApp).toBe(`${REQUEST}behind`)
  })

  test('who says more to it than a request can be, after it left, loses the trunk', async () => {
    const { lane, trunk, far, heard, asked, until } = await open()
    lane.finish()
    const frame = text(MAX_LANE_FRAME_BYTES)
    await asked(frame, frame, frame, frame)
    expect(trunk.isBroken).toBe(false)
    far.say(LANE, 'a')
    await until(() => heard.isBack, 'the end')
    expect(heard.moreText.length).toBe(4 * MAX_LANE_FRAME_BYTES)
    expect(heard.log.at(-1)).toBe('back torn')
  })

  test("the visitor's end leaves: it is over, and back", async () => {
    const here = await open()
    here.far.leave(LANE)
    await here.until(() => here.heard.isBack, 'its way back')
    expect(here.heard.log).toEqual(['over', 'back'])
    await untilLastWord(here)
  })

  test('a trunk that breaks tears it', async () => {
    const { far, heard, asked, until } = await open()
    await asked(REQUEST)
    reset(far.peer)
    await until(() => heard.isBack, 'its way back')
    expect(heard.log).toEqual(['over', 'back torn'])
    expect(heard.end).toMatchObject({ isTorn: true, hasFailed: false, receivedBytes: REQUEST.length })
  })

  test('a trunk that is full: the answer stays where it is until there is room', async () => {
    const { app, trunk, descriptor, far, heard, asked, turn } = await open()
    await asked(REQUEST)
    far.peer.pause()
    fill(trunk, OTHER_LANE + 1)
    app.write(ok('body'))
    await eventually(() => arrived(descriptor) === 'bytes', 'the answer')
    turn()
    expect(arrived(descriptor)).toBe('bytes')
    expect(heard.log).toEqual([])
    far.peer.resume()
    await turningAlone(trunk)(() => far.of(LANE) !== '', 'the answer at the far end')
    expect(far.of(LANE)).toBe(`|${ok('body')}`)
    expect(heard.log).toEqual([])
  })
})
