// The forms of texts, by the name of their meaning.

import { isIP } from 'node:net'
import { countryOf } from '../countries.ts'
import { domainHint, isValidSubdomain, parseHost } from '../names.ts'

export type Form =
  | 'text'
  | 'server'
  | 'proxy'
  | 'url'
  | 'host'
  | 'host-header'
  | 'subdomain'
  | 'domain'
  | 'token'
  | 'network'
  | 'place'
  | 'name-pattern'
  | 'name-template'
  | 'host-template'
  | 'credential'
  | 'own-host'
  | 'host-pattern'
  | 'url-path'
  | 'route'
  | 'service'
  | 'email-pattern'
  | 'header'
  | 'header-value'

interface FormEntry {
  readonly fits: (text: string) => boolean
  /** The text after "is not". */
  readonly what: string
  /** Returns a hint for a text that does not fit, after a colon. */
  readonly hint?: (text: string) => string
}

const isUrl = (text: string, schemes: RegExp) =>
  URL.canParse(text) && schemes.test(new URL(text).protocol) && new URL(text).hostname !== ''

/** The case of names only matters to those who type them. */
const isLabel = (text: string) => isValidSubdomain(text.toLowerCase())

export const FORMS: Readonly<Record<Form, FormEntry>> = {
  text: { fits: text => text !== '', what: 'a text of at least one character' },
  server: {
    fits: text =>
      isUrl(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`, /^(?:wss?|https?):$/),
    what: 'the address of a server, such as "https://tunnel.example"',
  },
  proxy: {
    fits: text => text === '' || isUrl(text, /^(?:https?|socks5h?):$/),
    what: 'the URL of a proxy, such as "http://proxy.example:3128", or "" for none',
  },
  url: { fits: text => isUrl(text, /^https?:$/), what: 'an http:// or https:// URL' },
  host: {
    fits: text => hostOf(text)?.port === undefined && hostOf(text) !== undefined,
    what: 'a host without a port',
  },
  'host-header': { fits: text => hostOf(text) !== undefined, what: '"preserve", "rewrite" or a host' },
  subdomain: {
    fits: isLabel,
    what: 'a subdomain: 1 to 63 of a-z, 0-9 and "-", letter or digit at both ends',
  },
  domain: {
    fits: text => text.length <= 253 && text.split('.').every(isLabel),
    what: 'a domain name, such as "tunnel.example"',
    hint: domainHint,
  },
  token: {
    fits: text => /^[\x21-\x7e]{1,255}$/.test(text),
    what: 'a token: visible ASCII without spaces, 1 to 255 of it',
  },
  network: { fits: isNetwork, what: 'an IP address or a range such as "10.0.0.0/8"' },
  place: {
    fits: text => isNetwork(text) || countryOf(text) !== undefined,
    what: 'an IP address, a range such as "10.0.0.0/8" or a country such as "country:DE"',
  },
  'name-pattern': {
    fits: text => /^[a-z0-9*-]{1,63}$/i.test(text),
    what: 'a name or a pattern such as "team-*"',
  },
  'name-template': {
    fits: text => /^[a-z0-9*-]{1,63}$/i.test(text.replace(/\{[\w.:/-]{1,128}\}/g, 'x')),
    what: 'a name or a pattern such as "{repository_owner}--*"',
  },
  'host-template': {
    fits: text => /^[a-z0-9.*-]{1,253}$/i.test(text.replace(/\{[\w.:/-]{1,128}\}/g, 'x')),
    what: 'a host or a pattern such as "{team}.customer.example"',
  },
  credential: {
    fits: text => /^[\x21-\x7e]{1,8192}$/.test(text),
    what: 'a token: visible ASCII without spaces, 1 to 8192 of it',
  },
  'own-host': { fits: text => isOwnHost(text.toLowerCase()), what: 'a host such as "www.customer.example"' },
  'host-pattern': {
    fits: text => /^[a-z0-9.*-]{1,253}$/i.test(text),
    what: 'a host or a pattern such as "*.customer.example"',
  },
  'url-path': { fits: text => /^\/[^\s#]{0,1023}$/.test(text), what: 'a path such as "/up"' },
  route: {
    fits: isRoute,
    what: 'a path such as "/api", without "?" and "#"',
  },
  service: {
    fits: text => /^[\w.-]{1,63}$/.test(text),
    what: 'a name: 1 to 63 letters, digits, "-", "_" and "."',
  },
  'email-pattern': {
    fits: text => /^(?:\*|[^\s@*]+)@[^\s@*]+$/.test(text),
    what: 'an address such as "anna@example.com" or "*@example.com"',
  },
  header: { fits: text => /^[\w!#$%&'*+.^`|~-]{1,128}$/.test(text), what: 'the name of a header' },
  'header-value': {
    fits: text => /^[\x20-\x7e]{0,1024}$/.test(text),
    what: 'a header value: visible ASCII, at most 1,024 of it',
  },
}

export function isForm(name: string): name is Form {
  return Object.hasOwn(FORMS, name)
}

/** Whether the text has at least two labels, and is not an address. */
function isOwnHost(text: string): boolean {
  const labels = text.split('.')
  const isSpelled = labels.every(label => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(label))
  return text.length <= 253 && labels.length > 1 && isSpelled && !/^\d+$/.test(labels.at(-1) ?? '')
}

/**
 * Whether the text is a path that the client accepts: visible ASCII, no empty or dot segments, at most 255
 * characters. A slash at the end is removed.
 */
function isRoute(text: string): boolean {
  const path = text.replace(/\/+$/, '')
  const isPath = path.length <= 255 && /^(?:\/[\x21\x22\x24-\x2e\x30-\x3e\x40-\x7e]+)+$/.test(path)
  return isPath && !/\/\.\.?(?:\/|$)/.test(path)
}

function hostOf(text: string): ReturnType<typeof parseHost> | undefined {
  try {
    return parseHost(text)
  } catch {
    // The caller has a message of its own.
    return undefined
  }
}

function isNetwork(text: string): boolean {
  const [address = '', bits, more] = text.split('/')
  const family = isIP(address)
  if (family === 0 || more !== undefined) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}
