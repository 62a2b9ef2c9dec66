// Asks the public side whether visitors get through, with a request that the server responds after asking us.

import { createHash } from 'node:crypto'
import { deferred } from '../../deferred.ts'
import type { Address, Dial, SocketHandler } from '../../socket.ts'
import { PROBE_HEADER, probeProof } from '../../wire/control.ts'

/** The maximum size of a response that is read: its status line and the one header that counts. */
const MAX_ANSWER_BYTES = 8_192

/**
 * Probes the public side. Resolves to `true` if the server responded to the probe; `false` if anything else happened, or
 * nothing in time or before `over`. `dial`: the way that the client takes, so that a proxy on it is on the probe's way too.
 */
export async function probePublicSide(
  dial: Dial,
  url: string,
  secret: string,
  timeoutMs: number,
  over: AbortSignal,
): Promise<boolean> {
  const { promise: answer, resolve } = deferred<string>()
  const dialling = new AbortController()
  const giveUp = () => resolve('')
  const timer = setTimeout(giveUp, timeoutMs)
  if (over.aborted) giveUp()
  over.addEventListener('abort', giveUp, { once: true })
  let text = ''
  const handler: SocketHandler = {
    received(bytes) {
      text += new TextDecoder('latin1').decode(bytes)
      if (text.includes('\r\n\r\n') || text.length > MAX_ANSWER_BYTES) resolve(text)
    },
    drained() {},
    ended: () => resolve(text),
    closed: () => resolve(text),
  }
  const { host, hostname } = new URL(url)
  const proof = probeProof(secret, sha256)
  const dialled = dial(addressOf(url, hostname), handler, dialling.signal)
  const request = `HEAD / HTTP/1.1\r\nHost: ${host}\r\n${PROBE_HEADER}: ${proof}\r\nConnection: close\r\n\r\n`
  dialled.then(
    socket => socket.write(new TextEncoder().encode(request)),
    // Not reachable from here: that is what the caller wanted to know.
    giveUp,
  )
  const head = (await answer).toLowerCase()
  clearTimeout(timer)
  over.removeEventListener('abort', giveUp)
  dialling.abort()
  // A connection that opens late is not wanted any more; a dial that fails was reported above.
  dialled.then(
    socket => socket.terminate(),
    () => {},
  )
  return head.startsWith('http/1.1 204') && head.includes(`\r\n${PROBE_HEADER}: ok\r\n`)
}

/** Hashes a text as the proofs of probes want it. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

/** Whether the first bytes for an app of HTTP/1.1 are a probe by the server. No visitor knows the proof. */
export function isServersProbe(first: Uint8Array | undefined, proof: string): boolean {
  const text = Buffer.from(first ?? []).toString('latin1')
  return text.startsWith('HEAD / ') && text.includes(`\r\n${PROBE_HEADER}: ${proof}\r\n`)
}

function addressOf(url: string, hostname: string): Address {
  const { protocol, port } = new URL(url)
  const isSecure = protocol === 'https:'
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (isSecure ? 443 : 80) : Number(port),
    // Whether the certificate is good is for visitors to judge; the question here is whether they get through.
    ...(isSecure && { tls: { serverName: hostname, verify: false } }),
  }
}
