// What withLocaltunnels makes of a configuration of Next.

import { expect, test } from 'bun:test'
import { withLocaltunnels } from '../../src/integrations/next.ts'

const DEVELOPMENT = 'phase-development-server'
const url = 'https://shop.tunnel.example:8443'

test('in development the public host is added, by name for resources and with its port for actions', async () => {
  const own = {
    reactStrictMode: true,
    allowedDevOrigins: ['other.example'],
    experimental: {
      typedEnv: true,
      serverActions: { bodySizeLimit: '2mb', allowedOrigins: ['other.example'] },
    },
  }
  expect(await withLocaltunnels(own, { url })(DEVELOPMENT, {})).toEqual({
    reactStrictMode: true,
    allowedDevOrigins: ['other.example', 'shop.tunnel.example'],
    experimental: {
      typedEnv: true,
      serverActions: { bodySizeLimit: '2mb', allowedOrigins: ['other.example', 'shop.tunnel.example:8443'] },
    },
  })
})

test('a function is called with its phase and context, and no configuration is one', async () => {
  const own = withLocaltunnels(async (phase: string, context: unknown) => ({ env: { phase, context } }), {
    url,
  })
  expect(await own(DEVELOPMENT, 'context')).toMatchObject({ env: { phase: DEVELOPMENT, context: 'context' } })
  expect(await withLocaltunnels(undefined, { url })(DEVELOPMENT, {})).toMatchObject({
    allowedDevOrigins: ['shop.tunnel.example'],
  })
})

test('builds, and a start without a tunnel, change nothing', async () => {
  const own = { reactStrictMode: true }
  expect(await withLocaltunnels(own, { url })('phase-production-build', {})).toBe(own)
  expect(await withLocaltunnels(own, { url: undefined })(DEVELOPMENT, {})).toBe(own)
  expect(await withLocaltunnels(own, { url: 'no URL' })(DEVELOPMENT, {})).toBe(own)
})
