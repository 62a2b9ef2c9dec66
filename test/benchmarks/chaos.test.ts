// The judge of test/chaos/run.ts: answers that are wrong, cut short, or only look complete, and failures that no fault explains.

import { expect, test } from 'bun:test'
import { Answer, type Expected } from '../chaos/answer.ts'
import { FAULTS } from '../chaos/faults.ts'
import { judge, recovery } from '../chaos/judge.ts'
import type { Visit } from '../chaos/visitors-process.ts'
import { body } from '../hostile/scene/pattern.ts'
import { Random } from '../support/random.ts'

const EXPECTED: Expected = { whose: 'app-1 7', id: 7, bytes: 1_000 }
const head = (...lines: string[]) =>
  Buffer.from(['HTTP/1.1 200 OK', 'X-Id: app-1 7', ...lines, '', ''].join('\r\n'))
const counted = (length: number) => head(`Content-Length: ${length}`)
const chunk = (piece: Buffer) =>
  Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')])
const END = Buffer.from('0\r\n\r\n')
const WHOLE = body(7, 1_000)

/** The same verdict, however the answer is cut into pieces. */
function verdictOf(...parts: Buffer[]): string | undefined {
  const bytes = Buffer.concat(parts)
  const verdicts = [bytes.length, 1, 7].map(largest => {
    const answer = new Answer(EXPECTED)
    for (const piece of new Random(1).slices(bytes, largest)) {
      const verdict = answer.take(Buffer.from(piece))
      if (verdict !== undefined) return verdict
    }
    return answer.lost('closed')
  })
  expect(new Set(verdicts).size).toBe(1)
  return verdicts[0]
}

test('an answer is right with all of its bytes, and only then', () => {
  const chunked = head('Transfer-Encoding: chunked')
  expect(verdictOf(counted(1_000), WHOLE)).toBe('right')
  expect(verdictOf(chunked, chunk(WHOLE.subarray(0, 300)), chunk(WHOLE.subarray(300)), END)).toBe('right')
  expect(verdictOf(counted(1_000), WHOLE.subarray(0, 999))).toBe('failed: closed within the answer')
  expect(verdictOf(chunked, chunk(WHOLE), Buffer.from('0\r\n'))).toBe('failed: closed within the answer')
  // It says itself that this is all.
  expect(verdictOf(counted(999), WHOLE.subarray(0, 999))).toBe('truncated')
  expect(verdictOf(chunked, chunk(WHOLE.subarray(0, 999)), END)).toBe('truncated')
  expect(verdictOf(head(), WHOLE)).toBe('wrong')
})

test('bytes of another request are wrong, in the head and in the body', () => {
  expect(verdictOf(counted(1_000), body(8, 1_000))).toBe('wrong')
  const others = Buffer.from(counted(1_000).toString().replace('app-1 7', 'app-2 7'))
  expect(verdictOf(others, WHOLE)).toBe('wrong')
  expect(
    verdictOf(Buffer.from('HTTP/1.1 503 Busy\r\nX-LocalTunnels-Error: CLIENT_RECONNECTING\r\n\r\n')),
  ).toBe('failed: 503 CLIENT_RECONNECTING')
})

test('a failure is explained by a fault that covers it and was there while it was under way', () => {
  const [fault] = FAULTS
  if (fault === undefined) throw new Error('no faults')
  const visit = (begin: number, end: number, more: Partial<Visit> = {}): Visit => ({
    kind: 'get',
    name: 'app-1',
    server: 0,
    begin,
    end,
    judgement: 'failed: closed',
    elsewhere: 0,
    ...more,
  })
  const covers = ({ server }: Visit) => server === 0
  const visits = [
    visit(900, 1_100),
    visit(1_900, 5_000),
    visit(2_500, 2_600),
    visit(800, 900),
    visit(1_500, 1_600, { server: 1 }),
    visit(1_500, 1_600, { judgement: 'truncated' }),
    visit(1_500, 1_600, { judgement: 'right' }),
  ]
  const occurrences = [{ fault, what: 'server-a', from: 1_000, until: 2_000, covers }]
  const { rows, unexplained, truncated } = judge({ visits, occurrences, slackMs: 0 })
  expect(unexplained).toEqual([visits[2]!, visits[3]!, visits[4]!])
  expect(truncated).toEqual([visits[5]!])
  expect(rows).toMatchObject([{ times: 1, requests: 5, failed: 2, outside: 1 }])
  expect(recovery(rows[0]!)).toEqual([0.9, 0.9])
})
