// Server and client read paths each on their own: what the server lets pass as a webhook, the client checks as one.

import { expect, test } from 'bun:test'
import { parseRequestHead, RequestHead } from '../../../src/http/head.ts'
import { type GuardOptions, guarding } from '../../../src/index.ts'
import { OwnGuard } from '../../../src/own-guard.ts'
import { guardedWebhooks } from '../../../src/signatures/verify-settings.ts'
import { countInputs, FUZZ, Random } from '../../support/random.ts'

const webhook = { provider: 'github', secret: 'x' } as const
const options: GuardOptions = {
  password: 'correct horse',
  paths: {
    '/hooks/stripe': { webhook },
    '/kiosk': { webhook },
    '/é/straße': { webhook },
    '/API': { bearer: 'a-token-of-a-machine' },
  },
}

const PIECES =
  '/ // hooks HOOKS stripe Stripe kiosk é É straße STRASSE api x . .. %2e %2E%2e %2f %5c \\ ; ;a=b %3b %25 %252e %252f %00 ? # %3f %23 %6b %4b %e2%84%aa %c5%bf %c3%a9 %C3%89 %c3%9f %e1%ba%9e %ff %80 %c0%ae %e0%80%ae %f0%80%80%af %c1%a8 %20 + * @ : % %zz %09 %u002e \xff \xe2\x84\xaa \xc5\xbf \xc3 \x80 \xc0\xae \xe0\x80\xaf'.split(
    ' ',
  )
const STARTS = ['/hooks/stripe', '/kiosk', '/é/straße', '/HOOKS/STRIPE/', '/hooks/', '/', '/%c3%a9/', '//']
const HEAD = { maxHeadBytes: 4_096, maxHeaderCount: 9, maxTargetBytes: 4_096 }

test('what passes without a credential is checked as a webhook, however its path is spelled', async () => {
  const own = new OwnGuard(options)
  const tunnel = { name: 'shop', owner: 'anna', kind: 'http' } as const
  const guard = await guarding()(await own.define('shop'), tunnel)
  const webhooks = guardedWebhooks(options.paths ?? {}, false)
  const head = new RequestHead()
  const unchecked: string[] = []
  let passed = 0
  const count = 200_000 * FUZZ
  for (let seed = 0; seed < count; seed++) {
    const random = new Random(seed)
    let target = random.chance(0.7) ? random.pick(STARTS) : '/'
    for (let more = random.below(5); more > 0; more--) {
      const at = random.chance(0.5) ? target.length : 1 + random.below(target.length)
      target = target.slice(0, at) + random.pick(PIECES) + target.slice(at + (random.chance(0.3) ? 1 : 0))
    }
    // Some as bytes of UTF-8, some as they are.
    const bytes = Buffer.from(
      `POST ${target} HTTP/1.1\r\nHost: shop.localhost\r\n\r\n`,
      random.chance(0.5) ? 'latin1' : 'utf8',
    )
    if (parseRequestHead(head, bytes, 0, bytes.length, HEAD) !== bytes.length) continue
    const visitor = {
      kind: 'http',
      tunnel: 'shop',
      owner: 'anna',
      address: '192.0.2.1',
      isSecure: true,
    } as const
    const verdict = await guard.admit({ ...visitor, head })
    if (verdict === undefined || 'whileOpen' in verdict) {
      passed++
      if (!webhooks.some(one => one.matches(head.path))) unchecked.push(JSON.stringify(target))
    }
  }
  countInputs('paths of webhooks at both ends', count)
  expect(unchecked).toEqual([])
  // Not by refusing all of them.
  expect(passed).toBeGreaterThan(count / 20)
}, 60_000)
