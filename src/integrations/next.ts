// `localtunnels/next`: the dev server of Next accepts the public host that `localtunnels run` gave it.
//
//   // next.config.mjs, started as: localtunnels run -- next dev
//   import { withLocaltunnels } from 'localtunnels/next'
//   export default withLocaltunnels({ reactStrictMode: true })

/** The used part of a Next configuration; everything else stays. */
interface NextConfig {
  readonly allowedDevOrigins?: readonly string[]
  readonly experimental?: {
    readonly serverActions?: { readonly allowedOrigins?: readonly string[] }
  }
}

type ConfigFunction<Config, Context> = (phase: string, context: Context) => Config | Promise<Config>

/** Next's name for the phase in which its dev server runs. */
const DEVELOPMENT = 'phase-development-server'

/**
 * Returns a configuration, or a function that makes one, that accepts the public host for dev resources and server
 * actions. The host is that of `PUBLIC_URL`, or of `url`. Builds are not changed.
 */
export function withLocaltunnels<Config extends object, Context = unknown>(
  config: Config | ConfigFunction<Config, Context> = {} as Config, // no options at all are a configuration of Next
  { url = process.env.PUBLIC_URL }: { readonly url?: string | undefined } = {},
): ConfigFunction<Config, Context> {
  return async (phase, context) => {
    const own = typeof config === 'function' ? await config(phase, context) : config
    return phase === DEVELOPMENT && url !== undefined && URL.canParse(url) ? allow(own, new URL(url)) : own
  }
}

function allow<Config extends object>(config: Config, { hostname, host }: URL): Config {
  const { allowedDevOrigins = [], experimental } = config as NextConfig
  const actions = experimental?.serverActions
  return {
    ...config,
    // The host name without a port.
    allowedDevOrigins: [...allowedDevOrigins, hostname],
    experimental: {
      ...experimental,
      // The Host header, with a port.
      serverActions: { ...actions, allowedOrigins: [...(actions?.allowedOrigins ?? []), host] },
    },
  }
}
