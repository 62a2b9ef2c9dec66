// What can be asked of the load generator, and what it reports. `generator.c` is compiled when it is first needed.

import { existsSync, mkdirSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Child, finish, launch } from '../measure/children.ts'
import { unlessQuick } from '../measure/suite.ts'
import { FILE_SIZES, fileBytes } from '../origin/files.ts'
import { wwwFolder } from '../origin/origins.ts'
import { peersFolder } from '../peers/binary.ts'
import type { Endpoint, Tunnel } from '../peers/peer.ts'

/** One of the files that every app has, or bytes. */
export type Content = string | Uint8Array

/** A request with the answer that alone is correct. */
export interface Exchange {
  /** Name of the origin. All exchanges of a load go to one port. */
  readonly to: string
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Content
  /** Default 200. */
  readonly status?: number
  /** A text names a file of `origin/files.ts`. */
  readonly answer: Content
  /** The app repeats method and path in `X-Answer`; without that line the header lines are wrong. Default `false`. */
  readonly named?: true
}

export interface Load {
  /** Sent in turn; each connection starts at another one. */
  readonly exchanges: readonly Exchange[]
  readonly connections: number
  readonly seconds: number
  /** Requests a second, due on a schedule, whether or not answers come: waiting shows as latency. Default: closed loop. */
  readonly rate?: number
  /** A new connection for every request. */
  readonly reconnect?: boolean
  /** Stop after so many exchanges. */
  readonly passes?: number
  /** Uncounted exchanges of each connection before the clock starts. Default 1. */
  readonly warm?: number
  /** An exchange that takes longer has failed. Default 10 s, in a smoke run 2 s. */
  readonly timeoutMs?: number
  /** Messages behind an upgrade, or bytes without HTTP, in place of exchanges. */
  readonly messages?: Messages
}

export interface Messages {
  readonly to: string
  /** Path of the WebSocket; none: plain bytes. */
  readonly path?: string
  readonly send: Uint8Array
  readonly expect: Uint8Array
}

export interface LoadResult {
  /** Complete and correct, byte for byte. */
  readonly ok: number
  readonly failed: number
  /** Of those that failed: complete, and not what it must be. */
  readonly wrong: number
  readonly seconds: number
  readonly bytes: number
  /** Processor time of the generator itself. */
  readonly cpuSeconds: number
  /** In which it had no core, on Linux: they are in the latencies of every tunnel. */
  readonly waitedSeconds: number
  /** Milliseconds. */
  readonly mean: number
  readonly p50: number
  readonly p90: number
  readonly p95: number
  readonly p99: number
  readonly p999: number
  readonly max: number
  /** The first failure, in words. */
  readonly failure: string
}

/** Above this share a tunnel has no rate: it serves something else than the work that is measured. */
export const MAX_FAILED_SHARE = 0.001

/** Makes a load. Throws when an answer was wrong, or more than 0.1 % failed. */
export async function run(endpoints: Tunnel['endpoints'], load: Load): Promise<LoadResult> {
  const { stdout, stderr } = await finish([...prefixOf(endpoints, load), await generator()], {
    stdin: plan(endpoints, load),
    timeoutMs: (load.seconds + 40) * 1000 + 3 * (load.timeoutMs ?? 0),
  })
  return judged(stdout, stderr)
}

/** Connections that could not be had, and failures before the clock started. */
interface Early {
  readonly notOpened: number
  readonly warmFailures: number
}

function judged(stdout: string, stderr: string): LoadResult {
  const line = /^REPORT (.*)$/m.exec(stdout)?.[1]
  if (!line)
    throw new Error(`load generator: ${/^error: (.*)$/m.exec(stderr)?.[1] ?? (stderr || 'it ended early')}`)
  // Printed by generator.c.
  const result = JSON.parse(line) as LoadResult & Early
  const { ok, failed, wrong, notOpened, warmFailures, failure } = result
  const [bad, all] = [failed + warmFailures, ok + failed + warmFailures]
  if (wrong > 0 || bad > MAX_FAILED_SHARE * all)
    throw new Error(`${bad} of ${all} answers failed: ${failure}`)
  // The rate would be that of fewer connections than the row says.
  if (notOpened > 0) throw new Error(`${notOpened} connections could not be opened: ${failure}`)
  return result
}

/** Sends each exchange once on one connection: whether the answers are right. */
export async function check(endpoints: Tunnel['endpoints'], load: Load): Promise<void> {
  const passes = load.messages ? 2 : load.exchanges.length
  await run(endpoints, { ...load, connections: 1, seconds: 20, rate: 0, warm: 0, passes, reconnect: false })
}

/** Connections that have had one answer each and stay open until `stop`. */
export async function hold(
  endpoints: Tunnel['endpoints'],
  load: Load,
): Promise<Child & { readonly held: number }> {
  const child = await launch([...prefixOf(endpoints, load), await generator()], {
    stdin: plan(endpoints, load, HOLD),
    ready: /^held (\d+)$/,
    deadlineMs: 60_000,
  })
  return { ...child, held: Number(child.match?.[1]) }
}

export interface Busy {
  /** Ends it. Throws as `run` does, and when nothing came. */
  end(this: void): Promise<LoadResult>
}

/** A load that goes on until `end`. */
export async function keepBusy(endpoints: Tunnel['endpoints'], load: Load): Promise<Busy> {
  const { promise, resolve } = Promise.withResolvers<string>()
  const { stop } = await launch([...prefixOf(endpoints, load), await generator()], {
    stdin: plan(endpoints, load, BACKGROUND),
    ready: /^started$/,
    deadlineMs: 30_000,
    onLine: line => line.startsWith('REPORT') && resolve(line),
  })
  return {
    async end() {
      await stop()
      // Its last line may be read later than its end is seen.
      return judged(await Promise.race([promise, Bun.sleep(1_000).then(() => '')]), '')
    },
  }
}

function prefixOf(endpoints: Tunnel['endpoints'], { messages, exchanges }: Load): readonly string[] {
  return endpoints[messages?.to ?? exchanges[0]!.to]?.visitor ?? []
}

let built: Promise<string> | undefined

async function generator(): Promise<string> {
  built ??= build()
  return built
}

async function build(): Promise<string> {
  const source = join(import.meta.dir, 'generator.c')
  const target = join(peersFolder, 'bin/generator')
  mkdirSync(join(peersFolder, 'bin'), { recursive: true })
  if (existsSync(target) && statSync(target).mtimeMs > statSync(source).mtimeMs) return target
  const fresh = `${target}-${process.pid}`
  const flags = ['-O2', '-o', fresh, source, '-lssl', '-lcrypto']
  const remedy = 'apt-get install gcc libc6-dev libssl-dev'
  if (!Bun.which('cc')) throw new Error(`the load generator needs a C compiler: ${remedy}`)
  const { code, stderr } = await finish(['cc', ...flags])
  if (code !== 0)
    throw new Error(`the load generator cannot be compiled (${remedy}): ${stderr.slice(0, 300)}`)
  // Whole or not at all: another suite may start now.
  renameSync(fresh, target)
  return target
}

/** Bytes of a request head that reaches the endpoint. */
export function requestHead(
  { hostHeader, headers }: Endpoint,
  method: string,
  path: string,
  more: Readonly<Record<string, string>> = {},
): Buffer {
  const lines = Object.entries({ Host: hostHeader, ...headers, ...more }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1')
}

const RECONNECT = 1
const HOLD = 2
const BACKGROUND = 4
const [ANSWER_BYTES, ANSWER_HTTP, ANSWER_HEAD_ONLY] = [0, 1, 2]
const TIMEOUT_MS = unlessQuick(10_000, 2_000)
/** Larger contents are read from their file, not copied into the plan. */
const MAX_INLINE_BYTES = 65_536

/** What `generator.c` reads: numbers of 32 bits, and texts with their length in front. */
function plan(endpoints: Tunnel['endpoints'], load: Load, flags = 0): Buffer {
  const {
    exchanges,
    messages,
    connections,
    seconds,
    rate = 0,
    reconnect = false,
    passes = 0,
    warm = 1,
  } = load
  const to = endpoints[messages?.to ?? exchanges[0]!.to]!
  const parts: Uint8Array[] = []
  const number = (value: number): void => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32LE(Math.round(value))
    parts.push(bytes)
  }
  const text = (value: string | Uint8Array): void => {
    const bytes = Buffer.from(value)
    number(bytes.length)
    parts.push(bytes)
  }
  const content = (value: Content): void => {
    const size = sizeOf(value)
    const isFile = typeof value === 'string' && size > MAX_INLINE_BYTES
    number(isFile ? 1 : 0)
    text(isFile ? join(wwwFolder(), value) : typeof value === 'string' ? fileBytes(size) : value)
  }
  text(to.host)
  const own = (reconnect ? RECONNECT : 0) | flags
  const times = [connections, rate * 1000, seconds * 1000]
  for (const value of [to.port, to.tls ? 1 : 0, ...times, warm, own, passes, load.timeoutMs ?? TIMEOUT_MS])
    number(value)
  text(messages?.path === undefined ? '' : requestHead(to, 'GET', messages.path, UPGRADE))
  number(messages ? 1 : exchanges.length)
  if (messages) {
    number(ANSWER_BYTES)
    for (const none of [0, 0]) number(none)
    text(messages.send)
    content(new Uint8Array())
    content(messages.expect)
  }
  for (const { to, method = 'GET', path, headers = {}, body, status = 200, answer, named } of messages
    ? []
    : exchanges) {
    number(method === 'HEAD' ? ANSWER_HEAD_ONLY : ANSWER_HTTP)
    number(status)
    number(named ? 1 : 0)
    const more = {
      ...headers,
      ...(body !== undefined && { 'Content-Length': String(sizeOf(body)) }),
      ...(reconnect && { Connection: 'close' }),
    }
    text(requestHead(endpoints[to]!, method, path, more))
    content(body ?? new Uint8Array())
    content(answer)
  }
  return Buffer.concat(parts)
}

export function sizeOf(content: Content): number {
  return typeof content === 'string' ? FILE_SIZES[content]! : content.length
}

const UPGRADE = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
}
