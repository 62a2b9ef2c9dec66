import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { deliver } from 'localtunnels/test'
import { app, paid } from './app.ts'

const fixture = join(import.meta.dir, 'paid.http')

test('a paid invoice is noted', async () => {
  const answer = await deliver(fixture, app, { sign: { stripe: 'whsec_test' } })
  expect(answer.status).toBe(200)
  expect(paid).toEqual(['in_1'])
})

test('one that Stripe did not sign is refused', async () => {
  expect((await deliver(fixture, app)).status).toBe(400)
})
