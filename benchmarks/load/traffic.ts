// Requests as data: what visitors of the rows ask for, and the only answer that is right.

import { ITEMS } from '../origin/app.ts'
import { EVENTS } from '../origin/files.ts'
import type { Exchange, Messages } from './load.ts'

export function get(path: string, to = 'files'): Exchange {
  return { to, path: `/${path}`, answer: path, named: true }
}

export function post(bytes: number, to = 'sink'): Exchange {
  return {
    to,
    method: 'POST',
    path: '/',
    body: new Uint8Array(bytes).fill(97),
    // The app compares each byte: only then it answers with their number alone.
    answer: Buffer.from(String(bytes)),
    named: true,
  }
}

const BROWSER_HEADERS: Readonly<Record<string, string>> = {
  Connection: 'keep-alive',
  'sec-ch-ua-platform': '"Linux"',
  'User-Agent':
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36',
  'sec-ch-ua': '"Chromium";v="130", "Google Chrome";v="130", "Not?A_Brand";v="99"',
  'sec-ch-ua-mobile': '?0',
  Accept: '*/*',
  'Sec-Fetch-Site': 'same-origin',
  'Sec-Fetch-Mode': 'no-cors',
  'Sec-Fetch-Dest': 'script',
  Referer: 'https://my-app.tunnel.example/',
  'Accept-Encoding': 'gzip, deflate, br, zstd',
  'Accept-Language': 'en-US,en;q=0.9',
  Cookie: `session=${'0123456789abcdef'.repeat(4)}; theme=dark; _ga=GA1.1.1234567890.1700000000; consent=yes`,
}

export const SMALL: readonly Exchange[] = [get('20')]
export const BROWSER: readonly Exchange[] = [{ ...get('20'), headers: BROWSER_HEADERS }]
export const POSTS: readonly Exchange[] = [post(100)]
/** Each tenth closes the connection, unannounced: who keeps connections has to ask again. */
export const CLOSING: readonly Exchange[] = [{ ...get('20', 'sink'), path: '/closing' }]
/** Nine GETs for each POST of 100 B. */
export const ONE_POST_IN_TEN: readonly Exchange[] = [...Array<Exchange>(9).fill(get('20', 'sink')), post(100)]
/** Pages are small, scripts and styles 1 KB, one picture: as a browser loads a site. */
export const SITE: readonly Exchange[] = ['20', '1k', '20', '20', '1k', '100k', '20', '20', '1k', '20'].map(
  name => get(name),
)
export const IN_TWO_SEGMENTS: readonly Exchange[] = [get('20', 'split')]
export const CHUNKED: readonly Exchange[] = [{ ...get('1k', 'node'), path: '/chunked' }]
export const SERVER_SENT: readonly Exchange[] = [
  { to: 'node', path: '/events', answer: Buffer.from(EVENTS.join('')), named: true },
]

export const JSON_LIST: Exchange = {
  to: 'bun',
  path: '/json',
  answer: Buffer.from(JSON.stringify(ITEMS)),
  named: true,
}

const MESSAGE_BYTES = 100
const MASK = [0x12, 0x34, 0x56, 0x78] as const

/** A text message of 100 B each way. */
export const WEBSOCKET: Messages = {
  to: 'bun',
  path: '/ws',
  send: Uint8Array.of(
    0x81,
    0x80 | MESSAGE_BYTES,
    ...MASK,
    ...Array.from({ length: MESSAGE_BYTES }, (_, i) => 97 ^ MASK[i & 3]!),
  ),
  expect: Uint8Array.of(0x81, MESSAGE_BYTES, ...Array<number>(MESSAGE_BYTES).fill(97)),
}
