// The control host: where clients connect, and the server's own small pages. Requests for tunnel hosts never come here.

import type { Branding } from '../../branding.ts'
import type { ErrorCode } from '../../errors.ts'
import { wantsHtml } from '../../http/error-answer.ts'
import type { RequestHead } from '../../http/head.ts'
import { INFO_POLICY, infoPage } from '../../http/pages.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import { VERSION } from '../../version.ts'
import { OPEN_HEADER } from '../../wire/control.ts'
import { LINK_PROTOCOL } from '../../wire/frame.ts'
import type { ServerContext } from '../context/server-context.ts'
import { type Arrival, type Route, refusal } from '../contracts/front.ts'
import { DEAD_EXCHANGE, type Exchange, type Upstream, type Visit } from '../contracts/upstream.ts'
import type { TokenThrottle } from '../limits/token-throttle.ts'
import type { Rule } from '../settings/policy.ts'
import type { ClientRegistry } from './client-registry.ts'
import type { SessionLinks } from './links.ts'
import { type Applicant, upgradeRoute } from './upgrade.ts'

/** Routes control connections and requests for pages, and refuses all others. */
export function controlRoute(arrival: Arrival, host: ControlHost): Route {
  const { head } = arrival
  if (head.upgrade === LINK_PROTOCOL) return linkRoute(head, host)
  if (head.upgrade === 'websocket') return upgradeRoute(arrival, host)
  return { kind: 'upstream', upstream: new Pages(host) }
}

/** Routes a link: after the response, raw bytes for the session that its secret names. */
function linkRoute(head: RequestHead, host: ControlHost): Route {
  if (head.method !== 'GET' || head.body !== 'none') return refusal('BAD_REQUEST')
  const [, secret = '', number = ''] =
    /^Link (\S+) (\d{1,10})$/.exec(head.header('authorization') ?? '') ?? []
  const links = host.linksOf(secret)
  if (links === undefined) return refusal('TOKEN_REFUSED')
  if (!links.hasRoomFor(Number(number))) return refusal('CLIENT_LIMIT')
  return {
    kind: 'takeover',
    takeOver(socket) {
      socket.write(LINK_ANSWER)
      return links.accept(Number(number), socket)
    },
  }
}

const LINK_ANSWER = Buffer.from(
  `HTTP/1.1 101 Switching Protocols\r\nUpgrade: ${LINK_PROTOCOL}\r\nConnection: Upgrade\r\n\r\n`,
)

/**
 * Returns the path below `basePath`. A path that is not below it is unchanged, because a proxy may have removed the base path.
 */
export function pathBelow(basePath: string, path: string): string {
  if (path === basePath) return '/'
  return path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : path
}

/** An upstream that responds at once, for health and certificate checks. */
class Pages implements Upstream {
  readonly wire = 'streams'
  readonly inFlight = 0
  readonly #host: ControlHost

  constructor(host: ControlHost) {
    this.#host = host
  }

  begin(visit: Visit): Exchange {
    const { method, target } = visit.head
    if (visit.head.body !== 'none' || (method !== 'GET' && method !== 'HEAD')) {
      visit.fail('TUNNEL_NOT_FOUND')
      return DEAD_EXCHANGE
    }
    const [path = '', query = ''] = target.split('?')
    const page = this.#page(pathBelow(this.#host.basePath, path), new URLSearchParams(query), visit.head)
    if (page === undefined) {
      visit.fail('TUNNEL_NOT_FOUND')
      return DEAD_EXCHANGE
    }
    return { ...DEAD_EXCHANGE, bodyEnded: () => answer(visit, page) }
  }

  /** Returns the page for a person who opens the server's address in a browser. */
  #home(host: string): Page {
    const { branding, isOpen, version } = this.#host
    const who = branding?.name === undefined ? 'It' : `${branding.name} runs it. It`
    const ask = branding?.contact ?? 'its operator'
    const share = ['Share the app on port 3000', `localtunnels 3000 --server ${host}`] as const
    const body = infoPage({
      title: 'This server gives apps a public address',
      text: `${who} opens tunnels to apps on other machines. ${isOpen ? 'Everybody may use it.' : `Ask ${ask} for a token.`}`,
      steps: isOpen ? [share] : [['Sign in once', `localtunnels login ${host}`], share],
      host,
      branding,
      who: ` ${version}`,
    })
    const lines = `Content-Security-Policy: ${INFO_POLICY}\r\n`
    return { status: 200, type: 'text/html; charset=utf-8', body, lines }
  }

  #page(path: string, query: URLSearchParams, head: RequestHead): Page | undefined {
    switch (path) {
      case '/':
        return wantsHtml(head)
          ? this.#home((head.header('host') ?? head.host) + this.#host.basePath)
          : { ...text(200, `localtunnels ${this.#host.version}\n`), ...(this.#host.isOpen && OPEN) }
      case '/health':
      case '/_health':
        return text(200, 'OK')
      case '/tls-check':
      case '/_tls-check':
        return this.#host.isKnownHost((query.get('domain') ?? '').toLowerCase())
          ? text(200, 'OK')
          : text(404, 'Unknown host')
      default:
        return undefined
    }
  }
}

interface Page {
  readonly status: number
  readonly type: string
  readonly body: string
  /** Further header lines of the response. */
  readonly lines?: string
}

const OPEN = { lines: `${OPEN_HEADER}: 1\r\n` }

const text = (status: number, body: string): Page => ({ status, type: 'text/plain; charset=utf-8', body })

function answer(visit: Visit, page: Page): void {
  const body = Buffer.from(page.body)
  const connection = visit.keepsAlive ? '' : 'Connection: close\r\n'
  const head = `HTTP/1.1 ${page.status} ${page.status === 200 ? 'OK' : 'Not Found'}\r\nContent-Type: ${page.type}\r\nContent-Length: ${body.length}\r\nCache-Control: no-store\r\n${page.lines ?? ''}Date: ${new Date().toUTCString()}\r\n${connection}\r\n`
  visit.answered(page.status)
  visit.write(visit.head.method === 'HEAD' ? Buffer.from(head) : Buffer.concat([Buffer.from(head), body]))
  visit.done(visit.keepsAlive)
}

/** The part of the server that the control host uses. */
export class ControlHost {
  readonly version: string = VERSION
  readonly tokenThrottle: TokenThrottle
  readonly #context: ServerContext
  readonly #clients: ClientRegistry

  constructor(context: ServerContext, clients: ClientRegistry) {
    this.tokenThrottle = clients.tokenThrottle
    this.#context = context
    this.#clients = clients
  }

  /** The operator's name, contact and logo, for pages. */
  get branding(): Branding | undefined {
    return this.#context.settings.branding
  }

  get basePath(): string {
    return this.#context.settings.basePath
  }

  /** Whether clients need no token. */
  get isOpen(): boolean {
    return this.#context.settings.policy.isOpen
  }

  /** Whether forwarding headers from this address are trusted. */
  isTrusted(address: string): boolean {
    return this.#context.isTrusted(address)
  }

  /** Returns why a client with this rule and address may not connect. `undefined` if it may. */
  clientRefusal(rule: Rule, address: string): ErrorCode | undefined {
    return this.#clients.refusalOfClient(rule, address)
  }

  refused(applicant: Applicant, code: ErrorCode): void {
    const { remoteAddress, wire } = applicant
    this.#context.emit('refused', { remoteAddress, wire, code })
  }

  /** Whether clients without a WebSocket subprotocol are accepted. */
  get hasJsonWire(): boolean {
    return this.#context.parts.adopt !== undefined
  }

  adopt(socket: Socket, applicant: Applicant, rule: Rule): SocketHandler {
    return this.#clients.adopt(socket, applicant, rule)
  }

  linksOf(secret: string): SessionLinks | undefined {
    return this.#clients.linkRegistry.find(secret)
  }

  /** Whether a host should have a certificate: the server's domains, and hosts of live tunnels. */
  isKnownHost(host: string): boolean {
    return this.#context.isKnownHost(host)
  }
}
