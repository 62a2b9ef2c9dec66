// `localtunnels [port]`: gives an app a URL, shows it once it responds, and explains responses of the app.

import { existsSync } from 'node:fs'
import type { TunnelClientOptions } from '../../client/options.ts'
import type { Run } from '../run.ts'
import type { Destination } from '../settings/destination.ts'
import type { Target } from '../settings/target.ts'
import { explainRefusals } from '../sharing/refused-host.ts'
import { pause, type Shared, share } from '../sharing/sharing.ts'

/** The pause in milliseconds between failed requests to the public URL. */
const PROBE_PAUSE_MS = 500
/** The time in milliseconds after which the URL is shown with a warning. Some networks cannot reach their own public address. */
const PROBE_GIVE_UP_MS = 10_000

export interface ShareSettings {
  readonly target: Target
  readonly destination: Destination
  readonly client: Omit<
    TunnelClientOptions,
    'server' | 'token' | 'port' | 'host' | 'url' | 'unix' | 'fetch' | 'folder' | 'spa'
  >
  /** The inspector. `undefined`: on if a person sees the output. */
  readonly inspect: boolean | { readonly port: number } | undefined
  readonly isQrWanted: boolean
  readonly isOpenWanted: boolean
  readonly isCopyWanted: boolean
}

/** Shares the app. Resolves after a clean end; rejects if the tunnel could not be made or is lost for good. */
export function shareApp(settings: ShareSettings, run: Run): Promise<void> {
  const { target, destination, client } = settings
  return share(
    {
      destination,
      client: { ...client, ...target.options, inspect: settings.inspect ?? isWatched(run) },
      targets: [target],
      countsConnections: false,
      connect: end => end.connect(),
      ready: shared => becomeReady(shared, settings),
      listen(shared) {
        // The user chose a Host header: do not suggest the flag.
        if (client.hostHeader !== undefined) return
        const say = (message: string) => run.output.event({ type: 'notice', code: 'HOST_REFUSED', message })
        explainRefusals(shared.client, () => target.url, say)
      },
    },
    run,
  )
}

/** Shows the URL once a request to it succeeded. */
async function becomeReady({ client, run, announce }: Shared, settings: ShareSettings): Promise<void> {
  // Before anything is shown, because the terminal echoes keys into the status line until the program reads them.
  if (run.terminal !== undefined) {
    const { offerKeys } = await import('./inspect-keys.ts')
    offerKeys(run, { url: () => client.getTunnelUrl(), page: () => client.inspectorUrl })
  }
  const startedAt = performance.now()
  // A private service has no public URL.
  while ((await client.probe()) === false) {
    if (run.stop.aborted) return
    if (performance.now() - startedAt > PROBE_GIVE_UP_MS) {
      const message = `No request came back through ${client.getTunnelUrl()}: visitors may not reach it. Run: localtunnels doctor`
      run.output.event({ type: 'notice', code: 'UNPROVEN', message })
      break
    }
    await pause(PROBE_PAUSE_MS)
  }
  const url = client.getTunnelUrl()
  const subdomain = client.getSubdomain()
  const inspector = client.inspectorUrl
  announce({
    kind: 'http',
    url,
    subdomain,
    origin: settings.target.label,
    ...(inspector !== undefined && { inspector }),
  })
  const wished = settings.client.subdomain
  if (wished !== undefined && wished !== subdomain) {
    const message = `The name ${wished} is in use; this tunnel got ${subdomain}.`
    run.output.event({ type: 'notice', code: 'NAME_CHANGED', message })
  }
  await offer(url, settings, run)
  if (inspector === undefined && settings.inspect === undefined && run.terminal !== undefined) {
    const message =
      'The inspector is off, because this is a container. To use it, forward port 4040 and start with --inspect 4040.'
    run.output.event({ type: 'notice', code: 'INSPECTOR_OFF', message })
  }
  client.on('reach', async reach => (await import('../sharing/reach.ts')).tellReach(reach, run.output))
}

/** Whether a person is at the terminal. In a container, no browser could reach the inspector's port. */
function isWatched({ terminal, environment }: Run): boolean {
  return terminal !== undefined && !existsSync('/.dockerenv') && environment.container === undefined
}

async function offer(url: string, settings: ShareSettings, run: Run): Promise<void> {
  if (!settings.isQrWanted && !settings.isCopyWanted && !settings.isOpenWanted) return
  const { copyUrl, openUrl, showQr } = await import('./offers.ts')
  if (settings.isQrWanted) await showQr(url, run)
  if (settings.isCopyWanted) await copyUrl(url, run)
  if (settings.isOpenWanted) await openUrl(url, run)
}
