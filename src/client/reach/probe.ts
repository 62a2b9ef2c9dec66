// Checks whether visitors reach the tunnel, with a request to its public URL. The server responds after asking this client.

import { createHash } from 'node:crypto'
import { deferred } from '../../deferred.ts'
import type { Address, Dial, SocketHandler } from '../../socket.ts'
import { PROBE_HEADER, probeProof } from '../../wire/control.ts'

/** The maximum size of a response that is read: its status line and the one header that matters. */
const MAX_ANSWER_BYTES = 8_192

/**
 * Probes the public URL. Resolves with `true` if the server responded to the probe; `false` otherwise, or if nothing
 * came in time or before `over`. `dial` is the client's own, so that the probe uses the same proxy.
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
    // The URL cannot be reached from here, which is the result.
    giveUp,
  )
  const head = (await answer).toLowerCase()
  clearTimeout(timer)
  over.removeEventListener('abort', giveUp)
  dialling.abort()
  // Close a connection that opens late. A dial that fails was handled above.
  dialled.then(
    socket => socket.terminate(),
    () => {},
  )
  return head.startsWith('http/1.1 204') && head.includes(`\r\n${PROBE_HEADER}: ok\r\n`)
}

/** Returns the hash of a text in the form of probe proofs. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

/** Whether the first bytes for an HTTP/1.1 app are a probe by the server. No visitor knows the proof. */
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
    // Visitors judge the certificate themselves. The probe only checks whether they get through.
    ...(isSecure && { tls: { serverName: hostname, verify: false } }),
  }
}
