// Recognises a dev server that refuses the public host, and knows the exact fix.
//
// After a response that looks like a refusal, it sends the app a request of its own with the public host. Responses
// to visitors are not read, so this costs requests nothing.

import { get as getPlainly, type IncomingMessage } from 'node:http'
import { get as getSecurely } from 'node:https'
import { deferred } from '../../deferred.ts'
import { looksRefused, type Seen } from './refused-host.ts'

const ASK_TIMEOUT_MS = 3_000
const LOOK_AT_BYTES = 8_192
/** The path for the check: Next treats all paths below `/_next/` in the same way, and responds to this one at once. */
const NEXT_PATH = '/_next/static/localtunnels.js'

interface HostBlock {
  readonly name: string
  readonly sign: RegExp
  readonly fix: (host: string, suffix: string) => string
}

// The first match counts, because Angular's page contains Vite's words.
const BLOCKS: readonly HostBlock[] = [
  {
    name: 'Angular',
    sign: /Blocked request\.[\s\S]*angular\.json/,
    fix: (_host, suffix) => `add "allowedHosts": ["${suffix}"] to the options of "serve" in angular.json`,
  },
  {
    name: 'Vite preview',
    sign: /Blocked request\.[\s\S]*preview\.allowedHosts/,
    fix: (_host, suffix) => `add preview: { allowedHosts: ['${suffix}'] } to vite.config`,
  },
  {
    name: 'Vite',
    sign: /Blocked request\. This host/,
    fix: (_host, suffix) => `add server: { allowedHosts: ['${suffix}'] } to vite.config`,
  },
  {
    name: 'webpack-dev-server',
    sign: /^\s*Invalid Host(?:\/Origin)? header/,
    fix: (_host, suffix) => `add devServer: { allowedHosts: ['${suffix}'] } to webpack.config.js`,
  },
  {
    name: 'Rails',
    sign: /Blocked hosts?: /,
    fix: (_host, suffix) => `add config.hosts << "${suffix}" to config/environments/development.rb`,
  },
  {
    name: 'Django',
    sign: /Invalid HTTP_HOST header|DisallowedHost/,
    fix: (_host, suffix) => `add '${suffix}' to ALLOWED_HOSTS in settings.py`,
  },
]

/**
 * Requests a page of the app at `origin` with the host of `publicUrl`. Returns one line with the cause of a refusal
 * and its fix; `undefined` if no known tool refuses. Never rejects.
 */
export async function explainRefusal(
  origin: string,
  publicUrl: string,
  seen: Seen,
): Promise<string | undefined> {
  const { host, hostname } = new URL(publicUrl)
  // A leading dot means every name below the domain in all of these tools, so the fix still works with another name.
  const suffix = hostname.slice(hostname.indexOf('.'))
  try {
    const page = await ask(origin, '/', { host })
    const block = looksRefused(page) ? BLOCKS.find(({ sign }) => sign.test(page.text)) : undefined
    if (block !== undefined) {
      return `${block.name} refuses the host ${hostname}. Fix: ${block.fix(hostname, suffix)}, or run with --host-header rewrite.`
    }
    if (seen.path.startsWith('/_next/') && (await isNextBlock(origin, publicUrl))) {
      // `--host-header rewrite` would not do: its server actions refuse an Origin that is not the public one.
      return `Next.js refuses ${hostname}. Fix: add allowedDevOrigins: ['*${suffix}'] to next.config.`
    }
  } catch {
    // The app is gone or slow. The next refusal starts another check.
  }
  return undefined
}

/** Whether Next blocks its development files, which depends on the page's origin: sends a request with and without it. */
async function isNextBlock(origin: string, publicUrl: string): Promise<boolean> {
  const { host, origin: publicOrigin } = new URL(publicUrl)
  const fromElsewhere = {
    host,
    origin: publicOrigin,
    referer: `${publicOrigin}/`,
    'sec-fetch-mode': 'no-cors',
    'sec-fetch-site': 'cross-site',
  }
  const blocked = await ask(origin, NEXT_PATH, fromElsewhere)
  return looksRefused(blocked) && !looksRefused(await ask(origin, NEXT_PATH, { host }))
}

async function ask(
  origin: string,
  path: string,
  headers: Record<string, string>,
): Promise<{ readonly status: number; readonly text: string }> {
  const { promise: answered, resolve, reject } = deferred<IncomingMessage>()
  // `fetch` would not do: Bun's sends requests for the app to the proxy in HTTP_PROXY.
  const get = origin.startsWith('https:') ? getSecurely : getPlainly
  const options = {
    headers: { accept: 'text/html', ...headers },
    signal: AbortSignal.timeout(ASK_TIMEOUT_MS),
    rejectUnauthorized: false,
    agent: false,
  } as const
  get(origin + path, options, resolve).on('error', reject)
  const answer = await answered
  return { status: answer.statusCode ?? 0, text: await beginning(answer) }
}

async function beginning(answer: IncomingMessage): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const bytes of answer) {
    text += decoder.decode(bytes, { stream: true })
    if (text.length > LOOK_AT_BYTES) break
  }
  return text.slice(0, LOOK_AT_BYTES)
}
