// Sends one DNS message to a server and returns the response: over TCP; or over UDP with repeats, and TCP for long responses.

import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { readAnswer, u16 } from './message.ts'

export interface DnsServerAddress {
  readonly host: string
  readonly port: number
}

const TCP_TIMEOUT_MS = 10_000
const UDP_TIMEOUT_MS = 2_000
const UDP_TRIES = 3
const MAX_MESSAGE_BYTES = 65_535

export async function exchange(
  { host, port }: DnsServerAddress,
  message: Buffer,
  transport: 'tcp' | 'udp',
  signal: AbortSignal,
): Promise<Buffer> {
  if (transport === 'udp') {
    for (let attempt = 0; attempt < UDP_TRIES; attempt++) {
      const answer = await overUdp(host, port, message, signal)
      if (answer === undefined) continue
      if (!readAnswer(answer).isTruncated) return answer
      return overTcp(host, port, message, signal)
    }
    throw new Error(`${host}:${port} did not answer ${UDP_TRIES} times over UDP`)
  }
  return overTcp(host, port, message, signal)
}

/**
 * Sends a message over UDP. Resolves with `undefined` without a response in time. Datagrams from another address or
 * with another id do not count.
 */
function overUdp(
  host: string,
  port: number,
  message: Buffer,
  signal: AbortSignal,
): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
    const finish = (settle: () => void) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      socket.close()
      settle()
    }
    const abort = () => finish(() => reject(signal.reason))
    const timer = setTimeout(() => finish(() => resolve(undefined)), UDP_TIMEOUT_MS)
    signal.addEventListener('abort', abort, { once: true })
    socket.on('error', error => finish(() => reject(error)))
    socket.on('message', (answer, from) => {
      const isOurs =
        from.port === port && answer.length > 2 && answer.readUInt16BE(0) === message.readUInt16BE(0)
      if (isOurs) finish(() => resolve(answer))
    })
    socket.send(message, port, host)
  })
}

/** Sends a message over TCP, with its length before it (RFC 1035, 4.2.2). */
function overTcp(host: string, port: number, message: Buffer, signal: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port })
    let received = Buffer.alloc(0)
    const finish = (settle: () => void) => {
      signal.removeEventListener('abort', abort)
      socket.destroy()
      settle()
    }
    const fail = (reason: string) => finish(() => reject(new Error(`${host}:${port} ${reason}`)))
    const abort = () => finish(() => reject(signal.reason))
    signal.addEventListener('abort', abort, { once: true })
    socket.setTimeout(TCP_TIMEOUT_MS, () => fail(`did not answer within ${TCP_TIMEOUT_MS} ms`))
    socket.on('error', error => finish(() => reject(error)))
    socket.on('close', () => fail('closed the connection without an answer'))
    socket.on('connect', () => socket.write(Buffer.concat([u16(message.length), message])))
    socket.on('data', (data: Buffer) => {
      received = Buffer.concat([received, data])
      if (received.length > MAX_MESSAGE_BYTES + 2) return fail('sent more than one message')
      if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return
      const answer = received.subarray(2, 2 + received.readUInt16BE(0))
      finish(() => resolve(answer))
    })
  })
}
