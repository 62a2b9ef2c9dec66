// A visitor's single request, on a connection of its own or on one that its agent keeps.

import { type Agent, request } from 'node:http'

export interface Answer {
  readonly status: number
  readonly body: string
  /** From the header x-localtunnels-error. */
  readonly code: string | undefined
}

export interface Ask {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Keeps the connection. Default: none does. */
  readonly agent?: Agent
  /** The visitor's own address. */
  readonly from?: string
  /** Leaves in the middle. */
  readonly signal?: AbortSignal
}

/** Rejects when the answer is cut. */
export function ask(port: number, host: string, options: Ask = {}): Promise<Answer> {
  const { method = 'GET', path = '/', headers = {}, body, agent = false, from, signal } = options
  return new Promise((resolve, reject) => {
    const asking = request({
      host: '127.0.0.1',
      port,
      method,
      path,
      agent,
      headers: { Host: host, ...headers },
      ...(from !== undefined && { localAddress: from }),
      ...(signal !== undefined && { signal }),
    })
    asking.on('error', reject)
    asking.on('response', answer => {
      const pieces: Buffer[] = []
      answer.on('data', (piece: Buffer) => pieces.push(piece))
      answer.on('error', reject)
      answer.on('end', () => {
        const named = answer.headers['x-localtunnels-error']
        resolve({
          status: answer.statusCode ?? 0,
          body: Buffer.concat(pieces).toString(),
          code: typeof named === 'string' ? named : undefined,
        })
      })
      answer.on('close', () => reject(new Error('the answer was cut')))
    })
    asking.end(body)
  })
}
