// Where a route leads, and which ports a text means.

import { resolve } from 'node:path'
import { isValidPort, parseHost } from '../names.ts'

/** An app by its address, as the options of a client name it. */
export type RouteTarget =
  | { readonly port: number; readonly host?: string }
  | { readonly url: string }
  | { readonly unix: string }

/** `8080`, `host:8080`, `http://…`, `unix:/path`. `undefined`: it is none of them. */
export function parseRouteTarget(text: string, folder: string): RouteTarget | undefined {
  if (/^\d+$/.test(text)) return isValidPort(Number(text)) ? { port: Number(text) } : undefined
  if (/^https?:\/\//i.test(text)) return URL.canParse(text) ? { url: text } : undefined
  if (/^unix:[^\0]/.test(text)) return { unix: resolve(folder, text.slice('unix:'.length)) }
  try {
    const { hostname, port } = parseHost(text)
    return port === undefined ? undefined : { host: hostname, port }
  } catch {
    // Whoever asks says what is wanted.
    return undefined
  }
}

/** `20000-29999,2222`, tidied; empty for no ports. `undefined`: it is neither. */
export function parsePorts(text: string): string | undefined {
  if (text === '') return ''
  const parts = text.split(',').map(part => part.trim())
  const isEach = parts.every(part => {
    const [, first = '', last = first] = /^(\d{1,5})(?: ?- ?(\d{1,5}))?$/.exec(part) ?? []
    return first !== '' && Number(first) >= 1 && Number(first) <= Number(last) && Number(last) <= 65_535
  })
  return isEach ? parts.map(part => part.replaceAll(' ', '')).join(',') : undefined
}
