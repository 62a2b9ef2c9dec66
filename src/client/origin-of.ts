// Where the app is, from the options that say so.

import { TunnelError } from '../errors.ts'
import { isValidPort, noPort, parseHost } from '../names.ts'
import type { Address, Dial } from '../socket.ts'
import { positive } from './milliseconds.ts'
import type { HttpTunnelOptions, OriginOptions } from './options.ts'
import type { Origin } from './origin.ts'
import { AddressOrigin } from './origins/address.ts'
import { folderOrigin } from './origins/folder.ts'
import { HandlerOrigin } from './origins/handler.ts'
import { LateOrigin } from './origins/late.ts'

/** Throws `OPTION_INVALID` or `PORT_INVALID`. */
export function originOf(
  options: OriginOptions,
  dial: Dial,
  protocol?: HttpTunnelOptions['protocol'],
): Origin {
  const { port, url, unix, fetch, folder, spa, later, websocket } = options
  if (websocket !== undefined && fetch === undefined)
    throw new TunnelError('OPTION_INVALID', 'websocket belongs to fetch, which is not given.')
  if ([port, url, unix, fetch, folder, later || undefined].filter(one => one !== undefined).length !== 1) {
    const text = 'Exactly one of port, url, unix, fetch, folder and later says where the app is.'
    throw new TunnelError('OPTION_INVALID', text)
  }
  if (later) return new LateOrigin()
  if (folder !== undefined) return folderOrigin(folder, spa ?? false)
  if (spa !== undefined) throw new TunnelError('OPTION_INVALID', 'spa belongs to folder, which is not given.')
  return fetch === undefined
    ? addressOrigin(options, dial, true, protocol === 'h2')
    : new HandlerOrigin(fetch, undefined, websocket)
}

export function addressOrigin(options: OriginOptions, dial: Dial, isHttp = false, isHttp2 = false): Origin {
  const connectTimeoutMs = positive('originConnectTimeoutMs', options.originConnectTimeoutMs ?? 10_000)
  const plain = originAddress(options)
  const address = isHttp2 && plain.tls ? { ...plain, tls: { ...plain.tls, protocol: 'h2' } } : plain
  return new AddressOrigin({ address, connectTimeoutMs, dial, isHttp })
}

function originAddress(options: OriginOptions): Address {
  const { port, host = 'localhost', url, unix, verifyOrigin } = options
  if (unix !== undefined) return { unix }
  if (url !== undefined) {
    const parsed = parseUrl(url)
    if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
      throw new TunnelError('OPTION_INVALID', `"${url}" is not an http:// or https:// URL.`)
    }
    const isSecure = parsed.protocol === 'https:'
    return {
      host: parsed.hostname.replace(/^\[|\]$/g, ''),
      port: parsed.port === '' ? (isSecure ? 443 : 80) : Number(parsed.port),
      ...(isSecure && { tls: verifyOrigin === undefined ? {} : { verify: verifyOrigin } }),
    }
  }
  if (port === undefined || !isValidPort(port)) throw noPort(`port ${port}`)
  return { host: parseHost(host).hostname, port }
}

/** `URL.parse`, which Node 20 does not have. */
function parseUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null
}
