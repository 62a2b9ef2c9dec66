// The checks of `localtunnels doctor`. None rejects: every error is a result.

import { createHash } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { hostname as machineName, networkInterfaces } from 'node:os'
import { type ProxySettings, proxyChooser } from '../../client/carriers/proxy.ts'
import { parseServer, type ServerAddress } from '../../client/carriers/server-address.ts'
import { alertOf, distrustOf } from '../../client/carriers/tls-faults.ts'
import { reasonOf } from '../../client/carriers/unreachable.ts'
import { addressOrigin } from '../../client/origins/origin-of.ts'
import { speaksTls, UNTRUSTED } from '../../client/origins/tls-check.ts'
import { dialThrough } from '../../client/proxies/dial.ts'
import { dialOutward } from '../../client/reach/outward.ts'
import { ERRORS, messageOf, TunnelError } from '../../errors.ts'
import { formatUrl } from '../../names.ts'
import type { Dial } from '../../socket.ts'
import { dial, onThisMachine } from '../../sockets/dial.ts'
import { lowPortAdvice } from '../../sockets/low-ports.ts'
import type { ShareSettings } from '../commands/share.ts'
import { type ClientEnd, createClient } from '../ends.ts'
import { EXIT, exitCodeOf } from '../exit-codes.ts'
import type { Target } from '../settings/target.ts'
import { accepts, DEAF, isListening } from '../sharing/origin-watch.ts'
import { asFlags } from '../words.ts'
import { askPage, type PageAnswer } from './control-page.ts'
import { whyNoAnswer } from './https-checks.ts'

export interface Check {
  readonly verdict: 'ok' | 'fail' | 'note'
  /** The object of the check, in one or two words. */
  readonly what: string
  readonly found: string
  /** The next step. */
  readonly fix?: string
}

const TIMEOUT_MS = 5_000
/** The difference in milliseconds above which certificates and tokens with dates may fail. */
const MAX_CLOCK_SKEW_MS = 60_000

export function checkRuntime(version: string): Check {
  const machine = `${process.platform} ${process.arch}`
  if (typeof Bun === 'undefined') {
    const found = `localtunnels ${version}, Node ${process.versions.node}, ${machine}: a client only`
    return { verdict: 'note', what: 'runtime', found, fix: 'A server needs Bun: https://bun.sh' }
  }
  const found = `localtunnels ${version}, Bun ${Bun.version}, ${machine}`
  if (Bun.semver.satisfies(Bun.version, '>=1.4.0')) return { verdict: 'ok', what: 'runtime', found }
  return { verdict: 'fail', what: 'runtime', found, fix: 'Bun 1.4 or newer is needed: bun upgrade' }
}

export function checkNoServer(): Check {
  const what = 'server'
  if (typeof Bun !== 'undefined')
    return { verdict: 'note', what, found: 'none named: localtunnels PORT starts one, for this machine only' }
  const fix =
    'Name yours: --server or localtunnels login. With Bun localtunnels PORT starts one for this machine.'
  return { verdict: 'fail', what, found: 'none named, and Node cannot start one', fix }
}

export function checkEnvironment(environment: Readonly<Record<string, string | undefined>>): Check {
  const names = Object.keys(environment).filter(name => name.startsWith('TUNNEL_') || name === 'APP_NAME')
  // A secret must not end up in a bug report.
  const shown = names
    .sort()
    .map(name => (/TOKEN|PROXY/.test(name) ? `${name}=(set)` : `${name}=${environment[name]}`))
  return { verdict: 'ok', what: 'environment', found: shown.join(' ') || 'no TUNNEL_ variable is set' }
}

/** The results about the connection to the server. */
export interface Way {
  readonly server: ServerAddress
  readonly proxy: ProxySettings | undefined
  readonly dial: Dial
}

/** Checks which proxy is used, if any, or why the one in the environment is not. */
export function checkWay(
  server: string,
  options: ShareSettings['client'],
  environment: Readonly<Record<string, string | undefined>>,
): { readonly way?: Way; readonly checks: readonly Check[] } {
  let address: ServerAddress
  try {
    address = parseServer(server, options)
  } catch (error) {
    return { checks: [{ verdict: 'fail', what: 'server', found: messageOf(error) }] }
  }
  try {
    const choose = proxyChooser(options, environment)
    const proxy = choose(address.address)
    const way = { server: address, proxy, dial: dialThrough(choose, dial) }
    return { way, checks: [proxyCheck(proxy, options, environment)] }
  } catch (error) {
    return { checks: [{ verdict: 'fail', what: 'proxy', found: messageOf(error) }] }
  }
}

function proxyCheck(
  proxy: ProxySettings | undefined,
  options: ShareSettings['client'],
  environment: Readonly<Record<string, string | undefined>>,
): Check {
  const variables = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy']
  const set = variables.filter(name => environment[name]).join(', ')
  const what = 'proxy'
  if (proxy !== undefined) {
    const login = proxy.login === undefined ? 'without a login' : 'with a login'
    const source = options.proxy ? '--proxy' : set
    return { verdict: 'ok', what, found: `to the server through ${proxy.label}, ${login} (${source})` }
  }
  if (set === '') return { verdict: 'ok', what, found: 'none' }
  const why = options.proxy === undefined ? 'they or NO_PROXY leave this server out' : '--proxy is empty'
  return { verdict: 'note', what, found: `${set} set, but not used: ${why}` }
}

export async function checkApp(target: Target): Promise<readonly Check[]> {
  const isUp = await isListening(target.dial)
  if ('folder' in target.dial) {
    if (isUp) return [{ verdict: 'ok', what: 'app', found: `${target.label} is a folder` }]
    const fix = 'Build the app first, or check --serve.'
    return [{ verdict: 'fail', what: 'app', found: `${target.label} is not a folder`, fix }]
  }
  const checks: Check[] = [
    isUp
      ? { verdict: 'ok', what: 'app', found: `${target.label} accepts connections` }
      : {
          verdict: 'fail',
          what: 'app',
          found: `nothing listens on ${target.label}`,
          fix: 'Start the app, or check --port and --host.',
        },
  ]
  if (!isUp || 'unix' in target.dial) return checks
  if ('url' in target.options && target.url?.startsWith('https:')) checks.push(await checkAppTls(target))
  if (target.url?.startsWith('http:') && (await speaksTls(target.dial, dial, TIMEOUT_MS))) {
    const url = target.url.replace(/^http:/, 'https:')
    checks.push({ verdict: 'fail', what: 'app TLS', found: `${target.label} speaks TLS`, fix: `Give ${url}` })
  }
  if (target.dial.host !== 'localhost') return checks
  const { port } = target.dial
  // Dev servers listen on either address family of `localhost`, depending on their runtime's version.
  const families = await Promise.all(
    ['127.0.0.1', '::1'].map(async host => ((await accepts({ host, port })) ? host : undefined)),
  )
  checks.push({ verdict: 'ok', what: 'app address', found: families.filter(Boolean).join(' and ') })
  return checks
}

/** Checks TLS with the app, as visitors' requests use it. */
async function checkAppTls({ options, label }: Target): Promise<Check> {
  const what = 'app TLS'
  try {
    const socket = await addressOrigin({ ...options, originConnectTimeoutMs: TIMEOUT_MS }, dial).connect(DEAF)
    socket.end()
    return { verdict: 'ok', what, found: `the TLS handshake with ${label} works` }
  } catch (error) {
    return { verdict: 'fail', what, found: asFlags(messageOf(error)) }
  }
}

/** Checks the name, TCP and HTTP of the server, its version and its clock. */
export async function checkServer(way: Way): Promise<readonly Check[]> {
  const { host: hostname = 'localhost', port } = way.server.address
  const secure = way.server.isSecure
  const url = formatUrl({ secure, hostname, ...(port !== undefined && { port }) }) + way.server.path
  if (way.proxy !== undefined && way.proxy.scheme !== 'socks5') {
    const found = `${hostname} is for the proxy to resolve`
    return [{ verdict: 'ok', what: 'server name', found }, ...(await checkStatus(way, url))]
  }
  try {
    // Dialled in the same way as by the client.
    const { host = hostname } = onThisMachine(way.server.address)
    const { address: ip } = await lookup(host)
    const found = `${hostname} is ${ip}`
    const checks = await checkStatus(way, url)
    const isDown = checks.some(({ verdict }) => verdict === 'fail')
    const own = isDown ? await checkOwnPort(ip, port ?? (secure ? 443 : 80)) : undefined
    return [{ verdict: 'ok', what: 'server name', found }, ...checks, ...(own === undefined ? [] : [own])]
  } catch {
    const fix = `Check --server for a typing error, or add a DNS record: ${hostname} with the address of the server (A or AAAA).`
    return [{ verdict: 'fail', what: 'server name', found: `${hostname} cannot be resolved`, fix }]
  }
}

async function checkStatus({ dial, server }: Way, url: string): Promise<readonly Check[]> {
  try {
    let answer = await askPage(dial, server, '/', TIMEOUT_MS)
    let version = versionOf(answer)
    // Other servers, and our old ones, report it there.
    if (version === undefined) {
      answer = await askPage(dial, server, '/status', TIMEOUT_MS)
      version = versionInStatus(answer)
    }
    if (version !== undefined) {
      return [
        { verdict: 'ok', what: 'server', found: `${url} responds, version ${version}` },
        checkClock(answer),
      ]
    }
    const found = `${url} returns ${answer.status}, but not as a tunnel server`
    const fix =
      server.path === ''
        ? 'Check the address given with --server: another program responds there.'
        : `Check the path ${server.path} in --server: it must be the --base-path of the server, and the proxy must pass it on.`
    return [{ verdict: 'fail', what: 'server', found, fix }]
  } catch (error) {
    return [
      {
        verdict: 'fail',
        what: 'server',
        found: `${url} does not respond: ${reasonOf(error)}`,
        ...fixOf(error),
      },
    ]
  }
}

/** Returns the version that the control host reports to programs. */
function versionOf({ body }: PageAnswer): string | undefined {
  return /^localtunnels (\S+)\n$/.exec(body)?.[1]
}

function versionInStatus({ body }: PageAnswer): string | undefined {
  try {
    // Foreign JSON: only this field is read, and checked.
    const { version } = JSON.parse(body) as { version?: unknown }
    return typeof version === 'string' ? version : undefined
  } catch {
    return undefined // not JSON, or without fields: another program responds
  }
}

function fixOf(error: unknown): { readonly fix?: string } {
  // An error of a proxy contains its fix.
  if (error instanceof TunnelError) return {}
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const text = messageOf(error)
  if (UNTRUSTED.test(code))
    return { fix: distrustOf(code, text, 'server').action ?? ERRORS.SERVER_UNTRUSTED.action }
  const fix = 'Check the address and the firewall, or start the server: localtunnels server'
  return { fix: alertOf(code, text, 'server')?.action ?? fix }
}

function checkClock(answer: PageAnswer): Check {
  const date = Date.parse(answer.headers.get('date') ?? '')
  if (Number.isNaN(date))
    return { verdict: 'note', what: 'clock', found: 'not compared: the server sends no Date' }
  // The header has a resolution of a second.
  const skewMs = Math.abs(Date.now() - date)
  const found = skewMs < 2_000 ? 'as the server' : `${Math.round(skewMs / 1_000)} s away from the server`
  if (skewMs <= MAX_CLOCK_SKEW_MS) return { verdict: 'ok', what: 'clock', found }
  const fix = 'Set the clock of this machine or of the server by NTP.'
  return { verdict: 'fail', what: 'clock', found, fix }
}

/** Checks a real tunnel: upgrade, registration, DNS of the new name, and a request to the public URL. */
export async function checkRoundTrip(
  server: string,
  options: ShareSettings['client'] & { readonly token: string },
): Promise<readonly Check[]> {
  // The same name each time: with --acme, each new name uses one of the certificates that a domain gets per week.
  const subdomain = `doctor-${createHash('sha256').update(machineName()).digest('hex').slice(0, 8)}`
  let client: Awaited<ReturnType<typeof createClient>>
  try {
    client = await createClient({
      ...options,
      server,
      subdomain,
      reconnect: false,
      fetch: () => new Response('ok'),
    })
    await client.connect()
  } catch (error) {
    const code = error instanceof TunnelError ? `${error.code}: ` : ''
    const fix = 'A proxy in front of the server must pass on WebSocket upgrades.'
    // A refusal of the server contains its fix.
    const isSaid = error instanceof TunnelError && exitCodeOf(error.code) === EXIT.refused
    const found = code + messageOf(error)
    return [{ verdict: 'fail', what: 'registration', found, ...(!isSaid && { fix }) }]
  }
  try {
    const url = client.getTunnelUrl()
    return [
      { verdict: 'ok', what: 'registration', found: `WebSocket upgrade and registration work, got ${url}` },
      await checkWildcard(new URL(url).hostname),
      await checkProbe(client, server, options),
    ]
  } finally {
    await client.disconnect()
  }
}

async function checkWildcard(hostname: string): Promise<Check> {
  const domain = hostname.slice(hostname.indexOf('.') + 1)
  if (hostname.endsWith('localhost')) {
    return { verdict: 'ok', what: 'DNS', found: `*.${domain} is this machine in every browser` }
  }
  try {
    const { address } = await lookup(hostname)
    return { verdict: 'ok', what: 'DNS', found: `*.${domain} is ${address}` }
  } catch {
    const fix = `Add a DNS record: *.${domain} with the address of the server (A, AAAA or CNAME ${domain}).`
    return { verdict: 'fail', what: 'DNS', found: `*.${domain} cannot be resolved`, fix }
  }
}

async function checkProbe(
  client: ClientEnd,
  server: string,
  options: ShareSettings['client'],
): Promise<Check> {
  const isProven = await client.probe()
  // The address may have changed by now.
  const url = client.getTunnelUrl()
  if (isProven) return { verdict: 'ok', what: 'public side', found: `a request to ${url} came back` }
  const outward = dialOutward([parseServer(server, options).address], dial)
  const why = await whyNoAnswer(outward, url, options)
  const fix =
    'Check DNS and firewall of the public side, --public-url of the server, and what it prints about certificates.'
  const found = `no request to ${url} came back${why === undefined ? '' : `: ${why}`}`
  return { verdict: 'fail', what: 'public side', found, fix }
}

/** Returns a note for that fault. `undefined` if the address is another machine's, or something listens there by now. */
export async function checkOwnPort(address: string, port: number): Promise<Check | undefined> {
  const own = Object.values(networkInterfaces()).flatMap(entries => entries ?? [])
  if (!own.some(entry => entry.address === address)) return undefined
  const what = 'port'
  const listener = createServer()
  try {
    listener.listen(port, address)
    await once(listener, 'listening')
    const found = `${address} is this machine, and nothing listens on port ${port}`
    return { verdict: 'note', what, found, fix: 'Start the server: localtunnels server' }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code !== 'EACCES') return undefined
    const found = `${address} is this machine, and this user may not listen on port ${port}`
    return { verdict: 'note', what, found, fix: lowPortAdvice(process.execPath) }
  } finally {
    listener.close()
  }
}
