// `localtunnels [port]`: connects, shows the URL once it answers, tells what happens, drains at the end.

import type { TunnelClientEvents, TunnelClientOptions } from '../../client/options.ts'
import { TunnelError } from '../../errors.ts'
import { clipboardSequence, copyWithTool } from '../clipboard.ts'
import { explainRefusal, looksRefused, type Seen } from '../dev-server.ts'
import { startEmbeddedServer } from '../embedded-server.ts'
import { type ClientEnd, createClient, type ServerEnd } from '../ends.ts'
import { openInBrowser } from '../open.ts'
import { OriginWatch } from '../origin-watch.ts'
import type { Run } from '../run.ts'
import { aborted } from '../stop.ts'
import type { Target } from '../target.ts'
import { Totals } from '../totals.ts'

/** How long Ctrl+C waits for answers under way. */
const DRAIN_MS = 10_000
/** Pause between requests through the public side that did not come back. */
const PROBE_PAUSE_MS = 500
/** From here on the URL is shown with a warning: some networks cannot reach their own public side. */
const PROBE_GIVE_UP_MS = 10_000
/** Refusals that are looked into before it is clear that they are the app's own. */
const MAX_REFUSALS_ASKED = 3

export interface ShareSettings {
  readonly target: Target
  /** `undefined`: a server in this process. */
  readonly server: string | undefined
  readonly client: Omit<
    TunnelClientOptions,
    'server' | 'port' | 'host' | 'url' | 'unix' | 'fetch' | 'folder' | 'spa'
  >
  readonly isQrWanted: boolean
  readonly isOpenWanted: boolean
  readonly isCopyWanted: boolean
}

/** Resolves after a clean end; rejects when the tunnel could not be made or is lost for good. */
export async function share(settings: ShareSettings, run: Run): Promise<void> {
  const embedded = settings.server === undefined ? await startEmbeddedServer() : undefined
  try {
    await shareThrough(settings, embedded, run)
  } finally {
    await embedded?.stop()
  }
}

async function shareThrough(
  settings: ShareSettings,
  embedded: ServerEnd | undefined,
  run: Run,
): Promise<void> {
  const { target } = settings
  const server = embedded === undefined ? (settings.server ?? '') : `http://127.0.0.1:${embedded.port}`
  const client = await createClient({
    ...settings.client,
    ...target.options,
    server,
    // What is in this process needs no way out.
    ...(embedded !== undefined && { proxy: false }),
  })
  const totals = new Totals()
  const watch = new OriginWatch(target, isUp =>
    run.output.event({ type: 'origin', origin: target.shortLabel, isUp }),
  )
  const closed = Promise.withResolvers<TunnelClientEvents['close']>()
  client.on('close', closed.resolve)
  report(client, { settings, run, totals, watch })

  run.output.event({ type: 'connecting', server })
  const stopped = aborted(run.stop)
  try {
    await Promise.race([client.connect(), stopped])
    // Not before: when there is no server, that is the one thing to say.
    if (!run.stop.aborted) void watch.check()
    if (!run.stop.aborted)
      await Promise.race([becomeReady(client, server, embedded !== undefined, settings, run), stopped])
    const end = await Promise.race([closed.promise, stopped])
    if (end?.error !== undefined && !run.stop.aborted) throw end.error
    run.output.event({ type: 'draining', requests: totals.underWay })
    await Promise.race([totals.whenIdle(), closed.promise, pause(DRAIN_MS)])
    run.output.event(totals.event())
  } finally {
    watch.stop()
    await client.disconnect()
  }
}

/** Shows the URL once a request through the public side came back. */
async function becomeReady(
  client: ClientEnd,
  server: string,
  isEmbedded: boolean,
  settings: ShareSettings,
  run: Run,
): Promise<void> {
  const startedAt = performance.now()
  while (!(await client.probe())) {
    if (run.stop.aborted) return
    if (performance.now() - startedAt > PROBE_GIVE_UP_MS) {
      const message = `No request came back through ${client.getTunnelUrl()}: visitors may not reach it. Run: localtunnels doctor`
      run.output.event({ type: 'notice', code: 'UNPROVEN', message })
      break
    }
    await pause(PROBE_PAUSE_MS)
  }
  const url = client.getTunnelUrl()
  const { label: origin } = settings.target
  const subdomain = client.getSubdomain()
  run.output.event({
    type: 'ready',
    url,
    subdomain,
    wire: wireOf.get(client) ?? 'streams',
    origin,
    server,
    isEmbedded,
  })
  const wished = settings.client.subdomain
  if (wished !== undefined && wished !== subdomain) {
    const message = `The name ${wished} is taken; this tunnel got ${subdomain}.`
    run.output.event({ type: 'notice', code: 'NAME_CHANGED', message })
  }
  await offer(url, settings, run)
}

/** The wire of each client's last registration. */
const wireOf = new WeakMap<ClientEnd, 'streams' | 'json'>()

async function offer(url: string, settings: ShareSettings, run: Run): Promise<void> {
  const notice = (code: string, message: string) => run.output.event({ type: 'notice', code, message })
  if (settings.isQrWanted) {
    const { qrCode } = await import('../qr.ts')
    run.output.block(`${qrCode(url)}\n`)
  }
  if (settings.isCopyWanted) {
    run.terminal?.(clipboardSequence(url))
    const isCopied = await copyWithTool(url, process.platform, run.environment)
    if (isCopied) notice('COPIED', 'copied to the clipboard')
    else if (run.terminal !== undefined) notice('COPIED', 'asked the terminal to copy the URL')
    else
      notice(
        'COPY_FAILED',
        'The URL was not copied: no clipboard tool (pbcopy, wl-copy, xclip, clip) was found.',
      )
  }
  if (settings.isOpenWanted && !(await openInBrowser(url, process.platform))) {
    notice('OPEN_FAILED', 'The browser was not opened: no program to open a URL (xdg-open) was found.')
  }
}

interface Reported {
  readonly settings: ShareSettings
  readonly run: Run
  readonly totals: Totals
  readonly watch: OriginWatch
}

/** Passes the client's events on, and acts on two kinds of answers: the app is gone, the app refuses the host. */
function report(client: ClientEnd, { settings, run, totals, watch }: Reported): void {
  const { output } = run
  let refusalsAsked = 0
  // Fields are picked one by one: what is printed is a public format, not whatever the client's events hold.
  client.on('request', ({ id, host, method, path }) => {
    totals.began(id)
    output.event({ type: 'request', id, ...(host !== undefined && { host }), method, path })
  })
  client.on('response', event => {
    const { id, host, method, path, status, durationMs, bytes, error } = event
    totals.ended(event)
    const answer = { type: 'response', id, method, path, status, durationMs, bytes } as const
    output.event({ ...answer, ...(host !== undefined && { host }), ...(error !== undefined && { error }) })
    if (event.error?.startsWith('ORIGIN_')) void watch.check()
    else if (looksRefused(event) && refusalsAsked < MAX_REFUSALS_ASKED) {
      refusalsAsked++
      void explain(event)
    }
  })
  client.on('disconnected', ({ error }) => {
    totals.cut()
    output.event({ type: 'disconnected', ...(error && describe(error)) })
  })
  client.on('reconnecting', ({ attempt, delayMs }) =>
    output.event({ type: 'reconnecting', attempt, delayMs }),
  )
  client.on('connected', ({ url, subdomain, wire }) => {
    wireOf.set(client, wire)
    output.event({ type: 'connected', url, subdomain, wire })
  })
  client.on('error', error => output.event({ type: 'error', ...describe(error) }))

  const explain = async (seen: Seen) => {
    const { url: origin } = settings.target
    if (origin === undefined || settings.client.hostHeader !== undefined) return
    const message = await explainRefusal(origin, client.getTunnelUrl(), seen)
    if (message === undefined || refusalsAsked > MAX_REFUSALS_ASKED) return
    // Said once.
    refusalsAsked = MAX_REFUSALS_ASKED + 1
    output.event({ type: 'notice', code: 'HOST_REFUSED', message })
  }
}

function describe(error: Error): { readonly code: string; readonly message: string } {
  return { code: error instanceof TunnelError ? error.code : 'INTERNAL', message: error.message }
}

function pause(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  setTimeout(resolve, ms).unref()
  return promise
}
