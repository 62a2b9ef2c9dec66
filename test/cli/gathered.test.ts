import { expect, test } from 'bun:test'
import { PassThrough } from 'node:stream'
import { GatheredSink } from '../../src/cli/outputs/gathered.ts'

/** Each write as it came. */
class Log extends PassThrough {
  readonly writes: string[] = []
  columns = 0

  override _transform(text: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.writes.push(text.toString())
    done()
  }
}

const sinkOf = (log: Log) => new GatheredSink(log as unknown as NodeJS.WriteStream)

test('lines told at one time leave in one write, in their order, before anything else happens', async () => {
  const log = new Log()
  const sink = sinkOf(log)
  sink.write('one\n')
  sink.write('two\n')
  expect(log.writes).toEqual([])
  await Promise.resolve()
  expect(log.writes).toEqual(['one\ntwo\n'])
  sink.write('three\n')
  await Promise.resolve()
  expect(log.writes).toEqual(['one\ntwo\n', 'three\n'])
})

test('flush writes at once what is there, and nothing a second time', async () => {
  const log = new Log()
  const sink = sinkOf(log)
  sink.write('last words\n')
  sink.flush()
  expect(log.writes).toEqual(['last words\n'])
  await Promise.resolve()
  sink.flush()
  expect(log.writes).toEqual(['last words\n'])
})

test('a stream without a width has 80 columns', () => {
  const log = new Log()
  expect(sinkOf(log).columns).toBe(80)
  log.columns = 120
  expect(sinkOf(log).columns).toBe(120)
})
