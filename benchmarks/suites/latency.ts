// How long one request takes through the tunnel, and how that spreads: `bun benchmarks/index.ts latency`.

import { concurrent, exchange, startLive } from '../live.ts'
import { bench, group, runSuite } from '../measure/mitata.ts'

const live = await startLive()
const ALL = [
  ['Direct', live.direct],
  ['Tunnel', live.streams],
  ['Tunnel · JSON wire', live.json],
] as const

const WEBHOOK: RequestInit = {
  method: 'POST',
  headers: {
    'content-type': 'application/json',
    'stripe-signature': `t=1700000000,v1=${'5257a869e7'.repeat(6)}`,
    'user-agent': 'Stripe/1.0 (+https://stripe.com/docs/webhooks)',
  },
  body: JSON.stringify({
    id: 'evt_1PzBench',
    object: 'event',
    type: 'payment_intent.succeeded',
    livemode: false,
    data: {
      object: {
        id: 'pi_3PzBench',
        amount: 2000,
        currency: 'usd',
        status: 'succeeded',
        metadata: { order: '42' },
      },
    },
  }),
}

const AUTHENTICATED: RequestInit = {
  headers: {
    authorization: 'Bearer bench-token',
    'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36',
    'x-request-id': '7f3d2c1b-0a9e-4d8c-b7a6-f5e4d3c2b1a0',
    accept: 'application/json',
    'accept-language': 'en-US,en;q=0.9',
    'cache-control': 'no-cache',
  },
}

for (const [title, path, init] of [
  ['Instant Response', '/', undefined],
  ['JSON API', '/json', undefined],
  ['Webhook POST', '/webhook', WEBHOOK],
  ['Many Headers', '/headers', undefined],
  ['10ms Backend', '/10ms', undefined],
  ['50ms Backend', '/50ms', undefined],
  ['Authenticated Request', '/account', AUTHENTICATED],
] as const) {
  group(title, () => {
    for (const [name, to] of ALL) bench(name, () => exchange(to, path, init))
  })
}

group('Concurrent Latency', () => concurrent(live, '/'))

await runSuite('latency', 'Latency')
