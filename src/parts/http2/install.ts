// HTTP/2 at the server: for visitors, and to apps.

import { ascii } from '../../http/characters.ts'
import type { Install } from '../../server/contracts/part.ts'
import type { Protocol } from '../../server/contracts/protocol.ts'
import { Http2Apps } from './apps.ts'

/** The beginning of the preface in RFC 9113 section 3.4; the connection checks the rest. */
const BEGINNING = ascii('PRI * HTTP/2.0\r\n')

export const installHttp2: Install = server => {
  let accept: Protocol['accept'] | undefined
  return {
    name: 'http2',
    protocol: {
      name: 'h2',
      beginning: BEGINNING,
      get isSpoken() {
        return accept !== undefined && server.settings.http2
      },
      accept: (...connection) => accept!(...connection),
    },
    appsOf: terms => new Http2Apps(terms),
    async load({ http2 }) {
      if (http2) ({ acceptHttp2: accept } = await import('./connection.ts'))
    },
  }
}
