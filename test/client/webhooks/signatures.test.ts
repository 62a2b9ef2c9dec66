// Signatures of webhooks, against the libraries of the providers themselves.

import { expect, test } from 'bun:test'
import { sign as signGitHub, verify as verifyGitHub } from '@octokit/webhooks-methods'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { Webhook as SvixWebhook } from 'svix'
import { type Signed, signed, verdictOf } from '../../../src/signatures/signatures.ts'
import { PROVIDERS, type Provider, verifySettings } from '../../../src/signatures/verify-settings.ts'

const SECRETS: Readonly<Record<Provider, string>> = {
  standard: `whsec_${Buffer.from('a secret of 24 characters').toString('base64')}`,
  stripe: 'whsec_stripe',
  github: 'a github secret',
  slack: 'a slack secret',
  shopify: 'a shopify secret',
}
const BODY = JSON.stringify({ id: 'evt_1', text: 'Grüße 🙂' })
const NOW = 1_800_000_000

const requestOf = (headers: Readonly<Record<string, string>>, body = BODY): Signed => ({
  header: name => headers[name],
  body: new TextEncoder().encode(body),
})
const check = (
  provider: Provider,
  request: Signed,
  now = NOW,
  secrets: readonly string[] = [SECRETS[provider]],
) => verdictOf(provider, secrets, request, { now, toleranceS: 300 })

test('what Stripe signs is valid, and Stripe takes what is signed here', async () => {
  const stripe = new Stripe('sk_test_x')
  const secret = SECRETS.stripe
  const header = await stripe.webhooks.generateTestHeaderStringAsync({
    payload: BODY,
    secret,
    timestamp: NOW,
  })
  expect(check('stripe', requestOf({ 'stripe-signature': header }))).toEqual({
    provider: 'stripe',
    isValid: true,
  })
  const own = signed('stripe', requestOf({}), { secret, now: NOW })['stripe-signature'] ?? ''
  const event = await stripe.webhooks.constructEventAsync(BODY, own, secret, 300, undefined, NOW * 1_000)
  expect(event.id).toBe('evt_1')
})

test('what GitHub signs is valid, and GitHub takes what is signed here', async () => {
  const secret = SECRETS.github
  expect(check('github', requestOf({ 'x-hub-signature-256': await signGitHub(secret, BODY) })).isValid).toBe(
    true,
  )
  const own = signed('github', requestOf({}), { secret, now: NOW })['x-hub-signature-256'] ?? ''
  expect(await verifyGitHub(secret, BODY, own)).toBe(true)
})

test('what a sender of Standard Webhooks signs is valid, and its library takes what is signed here', () => {
  const webhook = new Webhook(SECRETS.standard)
  const now = Math.floor(Date.now() / 1_000)
  const signature = webhook.sign('msg_1', new Date(now * 1_000), BODY)
  const headers = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': `${now}`,
    'webhook-signature': `v1a,x ${signature}`,
  }
  expect(check('standard', requestOf(headers), now).isValid).toBe(true)
  const own = signed('standard', requestOf({ 'webhook-id': 'msg_2' }), { secret: SECRETS.standard, now })
  expect(webhook.verify(BODY, { ...own })).toEqual(JSON.parse(BODY))
})

test('what Svix signs is valid under its own names, and its library takes what is signed here', () => {
  const webhook = new SvixWebhook(SECRETS.standard)
  const now = Math.floor(Date.now() / 1_000)
  const signature = webhook.sign('msg_1', new Date(now * 1_000), BODY)
  const headers = { 'svix-id': 'msg_1', 'svix-timestamp': `${now}`, 'svix-signature': `v1,AAAA ${signature}` }
  expect(check('standard', requestOf(headers), now)).toEqual({ provider: 'standard', isValid: true })
  // While a secret is replaced there is a signature with each.
  const old = `whsec_${Buffer.from('an older secret, 24 chars').toString('base64')}`
  const both = `${new SvixWebhook(old).sign('msg_1', new Date(now * 1_000), BODY)} ${signature}`
  expect(check('standard', requestOf({ ...headers, 'svix-signature': both }), now).isValid).toBe(true)
  for (const name of Object.keys(headers)) {
    const { [name as 'svix-id']: _, ...rest } = headers
    expect([name, check('standard', requestOf(rest), now).reason]).toEqual([name, 'no signature'])
  }
  const wrong = { ...headers, 'svix-id': 'msg_2' }
  expect(check('standard', requestOf(wrong), now).reason).toBe('does not match')
  expect(check('standard', requestOf(headers), now + 301).reason).toBe('too old')
  const own = signed('standard', requestOf({ 'svix-id': 'msg_2' }), { secret: SECRETS.standard, now })
  expect(Object.keys(own)).toEqual(['svix-id', 'svix-timestamp', 'svix-signature'])
  expect(webhook.verify(BODY, { ...own })).toEqual(JSON.parse(BODY))
  // Of both, what the app looks at is right.
  const twice = signed('standard', requestOf({ 'svix-id': 'a', 'webhook-id': 'a' }), {
    secret: SECRETS.standard,
    now,
  })
  expect(Object.keys(twice)).toHaveLength(6)
  expect(check('standard', requestOf(twice), now).isValid).toBe(true)
  for (const [name, value] of [
    ['svix-id', 'another'],
    ['svix-signature', 'v1,AAAA'],
  ] as const)
    expect(check('standard', requestOf({ ...twice, [name]: value }), now).reason).toBe('does not match')
})

test('Shopify signs webhooks and events under two names, and each that is there must fit', () => {
  const secret = SECRETS.shopify
  const [older, newer] = ['x-shopify-hmac-sha256', 'shopify-hmac-sha256'] as const
  const { [older]: right = '' } = signed('shopify', requestOf({}), { secret, now: NOW })
  expect(check('shopify', requestOf({ [newer]: right })).isValid).toBe(true)
  expect(check('shopify', requestOf({ [older]: right, [newer]: right })).isValid).toBe(true)
  expect(check('shopify', requestOf({ [older]: right, [newer]: 'AAAA' })).reason).toBe('does not match')
  expect(signed('shopify', requestOf({ [newer]: 'old' }), { secret, now: NOW })).toEqual({ [newer]: right })
})

// The examples of the providers' documentation.
test('the example of Slack is valid', () => {
  const body =
    'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c'
  const headers = {
    'x-slack-request-timestamp': '1531420618',
    'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
  }
  const secret = '8f742231b10e8888abcd99yyyzzz85a5'
  expect(check('slack', requestOf(headers, body), 1_531_420_618, [secret]).isValid).toBe(true)
})

test.each(PROVIDERS)('%s: another body, another secret and no signature are not valid', provider => {
  const secret = SECRETS[provider]
  const headers = signed(provider, requestOf({ 'webhook-id': 'msg' }), { secret, now: NOW })
  expect(check(provider, requestOf(headers))).toEqual({ provider, isValid: true })
  expect(check(provider, requestOf(headers, `${BODY} `)).reason).toBe('does not match')
  expect(check(provider, requestOf(headers), NOW, [`${'A'.repeat(32)}`]).reason).toBe('does not match')
  expect(check(provider, requestOf({})).reason).toBe('no signature')
  // While a secret is replaced, both hold.
  expect(check(provider, requestOf(headers), NOW, ['A'.repeat(32), secret]).isValid).toBe(true)
})

test.each(['standard', 'stripe', 'slack'] as const)('%s: an old signature is not valid', provider => {
  const headers = signed(provider, requestOf({}), { secret: SECRETS[provider], now: NOW })
  expect(check(provider, requestOf(headers), NOW + 300).isValid).toBe(true)
  expect(check(provider, requestOf(headers), NOW + 301).reason).toBe('too old')
  expect(check(provider, requestOf(headers), NOW - 301).reason).toBe('from the future')
})

test.each(['stripe', 'slack', 'standard'] as const)('%s: a timestamp that is none is not valid', provider => {
  const name = { stripe: 'stripe-signature', slack: 'x-slack-signature', standard: 'webhook-signature' }[
    provider
  ]
  const time = { stripe: '', slack: 'x-slack-request-timestamp', standard: 'webhook-timestamp' }[provider]
  const headers = { [name]: 't=soon,v1=00', 'webhook-id': 'a', ...(time !== '' && { [time]: 'soon' }) }
  expect(check(provider, requestOf(headers)).isValid).toBe(false)
})

test('paths are matched as an app may understand them', () => {
  const verify = verifySettings({ provider: 'github', secret: 's', paths: ['/hooks/*', '/one'] })
  for (const path of [
    '/hooks/a',
    '/hooks/',
    '/hooks',
    '/HOOKS/a?x',
    '//hooks//a',
    '/a/../hooks/b',
    '/%68ooks/a',
    '/hooks%2fa',
    '/one',
    '/one/',
    '/One?x#y',
    '/./one',
    '//x/hooks/a',
    '/\\x/hooks/a',
    '/hooks;v=1/a',
    '/%68ooks/%ff',
    '/%2568ooks/a',
    '/one;x',
    '/a/..;/hooks/a',
    '/x/\xc0\xae\xc0\xae/hooks/a',
    '/x/%e0%80%ae%e0%80%ae/hooks/a',
    // Routers that leave dots alone take it for one.
    '/hooks/../other',
    '/hoo%E2%84%AAs/%ff',
    '/hook%C5%BF/a',
    // Too much to look at: it may be one.
    `/${'%41'.repeat(65)}`,
  ])
    expect([path, verify.matches(path)]).toEqual([path, true])
  const page = `/${encodeURIComponent('статьи')}/${encodeURIComponent('как-настроить-туннель-для-вебхуков')}`
  for (const path of ['/', '/other', '/one/two', '/hooksx', '/x/../other', page, `/${'a'.repeat(5_000)}`])
    expect([path, verify.matches(path)]).toEqual([path, false])
})

test('paths with letters that are not ASCII are matched, escaped or not', () => {
  const verify = verifySettings({ provider: 'github', secret: 's', paths: ['/büro/*'] })
  const raw = (path: string) => Buffer.from(path).toString('latin1')
  for (const path of ['/b%C3%BCro/a', raw('/büro/a'), '/x/../b%c3%bcro/a', raw('/x/../büro/a')])
    expect([path, verify.matches(path)]).toEqual([path, true])
  expect(verify.matches('/buero/a')).toBe(false)
})

test.each([
  [{ provider: 'paypal', secret: 's' }],
  [{ provider: 'stripe', secret: '' }],
  [{ provider: 'stripe', secret: [] }],
  [{ provider: 'standard', secret: 'not base64!' }],
  [{ provider: 'stripe', secret: 's', paths: ['hooks'] }],
  [{ provider: 'stripe', secret: 's', paths: ['/a*b'] }],
  [{ provider: 'stripe', secret: 's', toleranceSeconds: -1 }],
  [{ provider: 'stripe', secret: 's', maxBodyBytes: 0 }],
])('%j cannot be used', options => {
  expect(() => verifySettings(options as never)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
})
