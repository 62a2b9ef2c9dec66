// What every DatagramSocket keeps, on any runtime: run in Bun, on Bun's node:dgram and in Node.

import { strict as assert } from 'node:assert'
import type { Associate, DatagramSocketHandler } from '../../src/datagram-socket.ts'
import { DatagramVisitor, datagramApp, seenBy } from '../support/datagrams.ts'
import { deferred, within } from '../support/within.ts'

/** Remembers what arrives; `until` waits for it. */
class Heard implements DatagramSocketHandler {
  readonly datagrams: Uint8Array[] = []
  drains = 0
  refusals = 0
  #check: () => void = () => {}

  received(datagram: Uint8Array): void {
    this.datagrams.push(datagram)
    this.#check()
  }
  dropped(): void {}
  drained(): void {
    this.drains++
    this.#check()
  }
  refused(): void {
    this.refusals++
    this.#check()
  }

  until(condition: () => boolean, what: string): Promise<void> {
    const { promise, resolve } = deferred()
    this.#check = () => {
      if (condition()) resolve()
    }
    this.#check()
    return within(promise, what)
  }
}

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

export function datagramCases(
  associate: Associate,
): readonly { name: string; run(this: void): Promise<void> }[] {
  return [
    {
      name: 'datagrams go out in order and the answers come back, of every size',
      async run() {
        const app = await datagramApp()
        const heard = new Heard()
        const socket = await associate({ host: '127.0.0.1', port: app.port }, heard)
        const sizes = [0, 1, 1_400, 0, 65_507]
        assert.equal(socket.send(sizes.map(size => new Uint8Array(size))), sizes.length)
        await heard.until(() => heard.datagrams.length === sizes.length, 'the answers')
        assert.deepEqual(
          heard.datagrams.map(({ length }) => length),
          sizes,
        )
        socket.close()
        await app[Symbol.asyncDispose]()
      },
    },
    {
      name: 'runs of one size, and what ends them, keep their boundaries, their order and their bytes',
      async run() {
        const app = await datagramApp()
        const heard = new Heard()
        const socket = await associate({ host: '127.0.0.1', port: app.port }, heard)
        const runs = [
          [30, 1_200],
          [1, 7],
          [2, 1_200],
          [20, 500],
          [1, 501],
          [1, 0],
          [5, 300],
          [4, 100],
        ] as const
        const datagrams = runs.flatMap(([count, size]) =>
          Array.from({ length: count }, (_, index) => new Uint8Array(size).fill(size + index)),
        )
        const expected = datagrams.map(datagram => datagram.slice())
        let sent = socket.send(datagrams)
        while (sent < datagrams.length) {
          const { drains } = heard
          await heard.until(() => heard.drains > drains, 'room for the rest')
          sent += socket.send(datagrams.slice(sent))
        }
        for (const datagram of datagrams) datagram.fill(255)
        await heard.until(() => heard.datagrams.length === expected.length, 'the answers')
        assert.deepEqual(
          heard.datagrams.map(datagram => [...datagram].join()),
          expected.map(datagram => [...datagram].join()),
        )
        socket.close()
        await app[Symbol.asyncDispose]()
      },
    },
    {
      name: 'what was sent may be overwritten at once',
      async run() {
        const app = await datagramApp()
        const heard = new Heard()
        const socket = await associate({ host: '127.0.0.1', port: app.port }, heard)
        const bytes = bytesOf('before')
        socket.send([bytes.subarray(0, 3), bytes.subarray(3)])
        bytes.fill(0)
        await heard.until(() => heard.datagrams.length === 2, 'the answers')
        assert.equal(Buffer.concat(heard.datagrams).toString(), 'before')
        socket.close()
        await app[Symbol.asyncDispose]()
      },
    },
    {
      name: 'one that is too long is lost, those around it are not',
      async run() {
        const app = await datagramApp()
        const heard = new Heard()
        const socket = await associate({ host: '127.0.0.1', port: app.port }, heard)
        assert.equal(socket.send([bytesOf('a'), new Uint8Array(65_535), bytesOf('b')]), 3)
        await heard.until(() => heard.datagrams.length === 2, 'the answers')
        assert.equal(Buffer.concat(heard.datagrams).toString(), 'ab')
        socket.close()
        await app[Symbol.asyncDispose]()
      },
    },
    {
      name: 'only the far side is heard',
      async run() {
        const app = await datagramApp()
        const heard = new Heard()
        const socket = await associate({ host: '127.0.0.1', port: app.port }, heard)
        socket.send([bytesOf('who am I?')])
        await seenBy(() => app.seen.length === 1)
        const stranger = await DatagramVisitor.to(app.seen[0]?.port ?? 0)
        await stranger.send('not from the far side')
        socket.send([bytesOf('again')])
        await heard.until(() => heard.datagrams.length === 2, 'the second answer')
        assert.deepEqual(
          heard.datagrams.map(datagram => Buffer.from(datagram).toString()),
          ['who am I?', 'again'],
        )
        socket.close()
        await stranger[Symbol.asyncDispose]()
        await app[Symbol.asyncDispose]()
      },
    },
    {
      name: 'nobody there is told and is no end: who comes later is heard',
      async run() {
        const gone = await datagramApp()
        await gone[Symbol.asyncDispose]()
        const heard = new Heard()
        const socket = await associate({ host: '127.0.0.1', port: gone.port }, heard)
        assert.equal(socket.send([bytesOf('1'), bytesOf('2'), bytesOf('3')]), 3)
        await heard.until(() => heard.refusals > 0, 'the refusal')
        const app = await datagramApp(undefined, gone.port)
        socket.send([bytesOf('4')])
        await heard.until(() => heard.datagrams.length > 0, 'an answer')
        socket.close()
        await app[Symbol.asyncDispose]()
      },
    },
    {
      name: 'after close nothing is sent and nothing comes',
      async run() {
        const app = await datagramApp()
        const heard = new Heard()
        const socket = await associate({ host: '127.0.0.1', port: app.port }, heard)
        socket.close()
        socket.close()
        assert.equal(socket.send([bytesOf('x')]), 1)
        const other = await DatagramVisitor.to(app.port)
        await other.ask('the app is there')
        assert.equal(app.seen.length, 1)
        assert.equal(heard.datagrams.length, 0)
        await other[Symbol.asyncDispose]()
        await app[Symbol.asyncDispose]()
      },
    },
    {
      name: 'localhost is 127.0.0.1, and a name that is none is an error',
      async run() {
        const app = await datagramApp()
        const heard = new Heard()
        const socket = await associate({ host: 'localhost', port: app.port }, heard)
        socket.send([bytesOf('x')])
        await heard.until(() => heard.datagrams.length === 1, 'the answer')
        socket.close()
        await assert.rejects(associate({ host: 'no-such-host.invalid', port: 1 }, heard))
        await app[Symbol.asyncDispose]()
      },
    },
  ]
}
