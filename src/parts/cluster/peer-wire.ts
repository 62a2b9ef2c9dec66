// The messages between servers of a cluster before HTTP/1.1: which server it is, and which visitor each request belongs to.

import { createHmac, timingSafeEqual } from 'node:crypto'
import { ERRORS } from '../../errors.ts'
import { ascii } from '../../http/characters.ts'
import { APP_ANSWERED_HEADER } from '../../http/error-answer.ts'
import { type RequestHead, type ResponseHead, readWhole } from '../../http/head.ts'
import type { Refusal } from '../../plugin.ts'
import type { PeerNote } from '../../server/contracts/peer-note.ts'
import type { RawPassenger } from '../../server/contracts/servers.ts'
import type { Endpoint } from '../../socket.ts'

/** The protocol of an upgraded connection for requests of another server's visitors. */
export const PEER_PROTOCOL = 'localtunnels-peer'
/** The same protocol with frames, for unix sockets, where a truncated response would otherwise look complete. */
export const FRAMED_PROTOCOL = 'localtunnels-peer-framed'
/** The protocol of an upgraded connection for one raw visitor. */
export const RAW_PROTOCOL = 'localtunnels-raw'
/** The header with the wish of the raw visitor: `tcp 20000`, `udp 20000` or `tls shop.tunnel.example`. */
const WANTED_HEADER = 'localtunnels-wanted'
/** The header with both ends of the visitor's connection: address and port of the visitor, then of the server it connected to. */
const ENDPOINTS_HEADER = 'localtunnels-endpoints'
/** The header before each request: scheme, whether the visitor showed a certificate, its address, and further facts. */
const VISITOR_HEADER = 'localtunnels-visitor'
/** The header that says that the called server does not hold the name. */
const MOVED_HEADER = 'localtunnels-moved'
const MOVED: Refusal = { code: 'CLUSTER_MOVED', headers: [[MOVED_HEADER, '1']] }
const APP_ANSWERED_LINE: Uint8Array = ascii(`${APP_ANSWERED_HEADER}: 1\r\n`)

/** The silence in milliseconds before the system probes the other server's machine: open requests may be silent for hours. */
export const PEER_SILENCE_MS = 10_000

export interface PeerVisitor extends PeerNote {
  readonly proto: 'http' | 'https'
  readonly isCertified: boolean
  readonly address: string
}

/** The maximum size of each head of the greeting and its reply, which have few lines. */
export const MAX_GREETING_BYTES = 4_096

/**
 * Returns a proof for `node` that the caller knows the cluster's secret. Other servers cannot use it. `number`: that
 * of this connection.
 */
export function peerProof(secret: string, node: string, number: string): string {
  return createHmac('sha256', secret).update(`peer of ${node} by ${number}`).digest('base64url')
}

/** Whether this is a protocol between servers of a cluster. */
export function isPeerProtocol(upgrade: string): boolean {
  return upgrade === PEER_PROTOCOL || upgrade === FRAMED_PROTOCOL || upgrade === RAW_PROTOCOL
}

/** Returns the greeting. With an empty `proof`, the called server sends a number first. `lines`: further lines of the head. */
export function greeting(host: string, proof: string, protocol: string, lines = ''): Uint8Array {
  const shown = proof === '' ? '' : `Authorization: Peer ${proof}\r\n`
  return ascii(
    `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n${shown}${lines}\r\n`,
  )
}

/** Returns the reply to a greeting without proof. The caller repeats the greeting on the connection, with the proof. */
export const challengeWith = (number: string): Uint8Array =>
  ascii(`HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Peer ${number}\r\nContent-Length: 0\r\n\r\n`)

export function numberIn(head: string): string {
  return /\r\nWWW-Authenticate: Peer ([\w-]+)\r\n/i.exec(head)?.[1] ?? ''
}

export function proofIn(head: string): string {
  return /(?:^|\r\n)Authorization: Peer (\S+)\r\n/i.exec(head)?.[1] ?? ''
}

/** The reply if the proof does not belong to this connection. */
export const PEER_REFUSED: Uint8Array = ascii(
  'HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n',
)

export const answerTo = (protocol: string): Uint8Array =>
  ascii(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: ${protocol}\r\nConnection: Upgrade\r\n\r\n`)

/** The replies to another server about its raw visitor: first that it is accepted as a server, then one of the others. */
export const RAW_ANSWERS: Readonly<Record<'taken' | 'opened' | 'moved' | 'refused', Uint8Array>> = {
  taken: ascii('HTTP/1.1 102 Processing\r\n\r\n'),
  opened: answerTo(RAW_PROTOCOL),
  moved: ascii('HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n'),
  refused: ascii('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n'),
}

/** Returns the lines of a greeting that describe the visitor of the connection. */
export function passengerLines({ kind, wanted, endpoints }: RawPassenger): string {
  const { source, destination } = endpoints
  const ends = [source, destination].map(({ address, port }) => `${address} ${port}`).join(' ')
  return `${WANTED_HEADER}: ${kind} ${wanted}\r\n${ENDPOINTS_HEADER}: ${ends}\r\n`
}

export function passengerOf(head: RequestHead): RawPassenger | undefined {
  const [, kind, wanted = ''] = /^(tcp|udp|tls|private) (\S+)$/.exec(head.header(WANTED_HEADER) ?? '') ?? []
  const [, from = '', fromPort, to = '', toPort] =
    /^(\S+) (\d{1,5}) (\S+) (\d{1,5})$/.exec(head.header(ENDPOINTS_HEADER) ?? '') ?? []
  if (kind !== 'tcp' && kind !== 'udp' && kind !== 'tls' && kind !== 'private') return undefined
  if (fromPort === undefined || toPort === undefined) return undefined
  const end = (address: string, port: string): Endpoint => ({ address, port: Number(port) })
  return { kind, wanted, endpoints: { source: end(from, fromPort), destination: end(to, toPort) } }
}

/** Whether two proofs are equal. The time does not depend on the equal part. */
export function isSameProof(shown: string, proof: string): boolean {
  const [a, b] = [Buffer.from(shown), Buffer.from(proof)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** Whether the other server does not hold the name any more. */
export function isMoved(answer: ResponseHead): boolean {
  return answer.status === ERRORS.CLUSTER_MOVED.status && answer.header(MOVED_HEADER) !== undefined
}

/** Returns the line that `takeVisitor` reads, with its CRLF. */
export function visitorLine({ proto, isCertified, address, keptFor, isCopy }: PeerVisitor): Uint8Array {
  const note = isCopy === true ? ' copy' : keptFor === undefined ? '' : ` kept=${keptFor}`
  return ascii(`${VISITOR_HEADER}: ${proto} ${isCertified ? '1' : '0'} ${address}${note}\r\n`)
}

/**
 * Removes the visitor's line from a head, and returns it: the first line, whatever other lines have this name.
 * `undefined` if it is missing.
 */
export function takeVisitor(head: RequestHead): PeerVisitor | undefined {
  const { bytes, fields } = head
  if (fields.count === 0 || !fields.isNamed(0, VISITOR_HEADER)) return undefined
  const value = Buffer.from(bytes.subarray(fields.valueStart(0), fields.valueEnd(0))).toString('latin1')
  const [, proto, certified, address = '', note = ''] =
    /^(https?) ([01]) ([0-9A-Fa-f.:%\w]*)(| copy| kept=[\w+/=-]+)$/.exec(value) ?? []
  if (proto !== 'http' && proto !== 'https') return undefined
  const [from, to] = [fields.lineStart(0), fields.lineEnd(0)]
  const rest = new Uint8Array(head.end - head.start - (to - from))
  rest.set(bytes.subarray(head.start, from))
  rest.set(bytes.subarray(to, head.end), from - head.start)
  if (!readWhole(head, rest)) return undefined
  return {
    proto,
    isCertified: certified === '1',
    address,
    moved: MOVED,
    ...(note === ' copy' && { isCopy: true }),
    ...(note.startsWith(' kept=') && { keptFor: note.slice(' kept='.length), answerLine: APP_ANSWERED_LINE }),
  }
}
