// Reads the target of a route, and the ports in a text.

import { resolve } from 'node:path'
import type { OriginOptions } from '../client/options.ts'
import { isValidPort, parseHost } from '../names.ts'

/** An app by its address, in the form of a client's options. */
export type RouteTarget = (
  | { readonly port: number; readonly host?: string }
  | { readonly url: string }
  | { readonly unix: string }
) &
  RouteExtras

/** The options of a route in addition to its address. */
export type RouteExtras = Pick<OriginOptions, 'stripPrefix' | 'addPrefix'> & {
  readonly protocol?: 'h2c' | 'h2'
}

/** Returns `:3000` and `*:3000`, as servers print them, with a host that can be dialled. */
export function withHost(text: string): string {
  return text.replace(/^\*?:(?=\d+$)/, 'localhost:')
}

/** Splits `h2c://host:port`, `h2c+unix:/path` and `h2://host`, with `,strip-prefix=/api` and `,add-prefix=/app` after it. */
export function splitTarget(given: string): { readonly extras: RouteExtras; readonly address: string } {
  const [text = '', ...prefixes] = given.split(/,(?=(?:strip|add)-prefix=)/)
  const paths = prefixes.map(one => [`${one.split('-', 1)[0]}Prefix`, one.slice(one.indexOf('=') + 1)])
  const extras: RouteExtras = Object.fromEntries(paths)
  const [address, protocol] = splitProtocol(text)
  return { extras: { ...(protocol && { protocol }), ...extras }, address }
}

function splitProtocol(text: string): readonly [address: string, protocol?: 'h2c' | 'h2'] {
  const [, clear, unix, secure] = /^(?:h2c:\/\/(.*)|h2c\+(unix:.*)|h2:\/\/(.*))$/is.exec(text) ?? []
  if (clear !== undefined) return [`http://${clear}`, 'h2c']
  if (unix !== undefined) return [unix, 'h2c']
  return secure === undefined ? [text] : [`https://${secure}`, 'h2']
}

/** Parses `8080`, `host:8080`, `http://…`, `unix:/path`, and those of `splitTarget`. `undefined` for another text. */
export function parseRouteTarget(given: string, folder: string): RouteTarget | undefined {
  const { extras, address } = splitTarget(given)
  const target = parseAddress(address, folder)
  return target && { ...target, ...extras }
}

function parseAddress(given: string, folder: string): RouteTarget | undefined {
  const text = withHost(given)
  if (/^\d+$/.test(text)) return isValidPort(Number(text)) ? { port: Number(text) } : undefined
  if (/^https?:\/\//i.test(text)) return URL.canParse(text) ? { url: text } : undefined
  if (/^unix:[^\0]/.test(text)) return { unix: resolve(folder, text.slice('unix:'.length)) }
  try {
    const { hostname, port } = parseHost(text)
    return port === undefined ? undefined : { host: hostname, port }
  } catch {
    // The caller's message says what is expected.
    return undefined
  }
}

/** Returns `20000-29999,2222` in canonical form; empty for no ports. `undefined` if the text is neither. */
export function parsePorts(text: string): string | undefined {
  if (text === '') return ''
  const parts = text.split(',').map(part => part.trim())
  const isEach = parts.every(part => {
    const [, first = '', last = first] = /^(\d{1,5})(?: ?- ?(\d{1,5}))?$/.exec(part) ?? []
    return first !== '' && Number(first) >= 1 && Number(first) <= Number(last) && Number(last) <= 65_535
  })
  return isEach ? parts.map(part => part.replaceAll(' ', '')).join(',') : undefined
}
