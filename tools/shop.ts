// A shop on a Friday morning, for pages and pictures: a server, a client with three services, and what visitors and providers of
// webhooks sent to them. All names and numbers are made up.

import { createHmac } from 'node:crypto'
import { guarding, TunnelClient, TunnelServer } from '../src/index.ts'

export const ADMIN_TOKEN = 'an-admin-token-of-the-shop'
const DOMAIN = 'tunnel.example'
const STRIPE = 'whsec_of_the_shop'
const GITHUB = 'secret of the shop'

const INVOICE =
  '{"id":"evt_1Q3kTz","object":"event","api_version":"2025-09-30","created":1795838470,"type":"invoice.paid","livemode":false,"pending_webhooks":1,"account_ref":12345678901234567890,"data":{"object":{"id":"in_1Q3kTx","object":"invoice","amount_paid":4980,"tax_rate":1.0,"currency":"eur","customer":null,"lines":{"data":[{"id":"il_1","amount":4980,"description":"Red hat × 2"}]}}}}'
const PUSH =
  '{"ref":"refs/heads/main","before":"6113728f27ae","after":"9c1185a5c5e9","repository":{"id":186853002,"full_name":"acme/shop","private":true},"pusher":{"name":"anna"},"commits":[{"id":"9c1185a5c5e9","message":"Read the tax rate from the invoice","added":[],"modified":["src/tax.ts","src/tax.test.ts"]}]}'
const CART =
  '{"items":[{"sku":"hat-red-m","qty":2,"price":24.90},{"sku":"mug-blue","qty":1,"price":12.00}],"currency":"EUR","coupon":null}'
const PRODUCTS =
  '[{"id":7,"name":"Red hat","price":24.90,"stock":31},{"id":8,"name":"Blue mug","price":12.00,"stock":0},{"id":9,"name":"Notebook, dotted","price":9.50,"stock":112},{"id":10,"name":"Pencil","price":1.20,"stock":840}]'
const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const json = (text: string, status = 200) => new Response(text, { status, headers: JSON_TYPE })
const html = (text: string) =>
  new Response(`<!doctype html>\n${text}`, { headers: { 'content-type': 'text/html; charset=utf-8' } })

/** How long its answers take. */
const TIMES_MS: Readonly<Record<string, number>> = {
  '/webhooks/stripe': 46,
  '/webhooks/github': 12,
  '/graphql': 31,
  '/products': 18,
  '/login': 88,
  '/api/cart': 8,
  '/api/reports/stock': 1_200,
}

export interface Shop {
  readonly server: TunnelServer
  readonly client: TunnelClient
  /** From now on its webhooks of Stripe succeed. */
  fix(): void
  /** What came on that morning. */
  morning(): Promise<void>
  /** A request to one of its tunnels. */
  visit(tunnel: string, path: string, init?: RequestInit): Promise<void>
  /** One more request, of those that come all day. */
  more(): Promise<void>
  stop(): Promise<void>
}

export async function openShop(): Promise<Shop> {
  let isFixed = false
  const answers: Readonly<Record<string, () => Response | Promise<Response>>> = {
    '/api/products': () => json(PRODUCTS),
    '/products': () =>
      html(
        '<html lang="de">\n<head><title>Hats and mugs</title></head>\n<body>\n  <h1>Products</h1>\n</body>\n</html>',
      ),
    '/login': () =>
      html(
        '<title>Sign in</title>\n<form method="post"><input name="user"><input name="password" type="password"></form>',
      ),
    '/assets/app-4f2c.js': () =>
      new Response('import{h as e,render as t}from"./preact-9d1.js";\n'.repeat(1_600), {
        headers: { 'content-type': 'text/javascript' },
      }),
    '/api/cart': () => json('{"id":"cart_91","total":61.80,"items":2}', 201),
    '/api/cart/91': () => json('{"id":"cart_91","total":61.80,"items":2}'),
    '/api/cart/91/items/2': () => new Response(null, { status: 204 }),
    '/api/reports/stock': () => {
      const row = (id: number) => `{"id":${id},"sku":"hat-${id}","stock":${id % 40},"moved":[{"by":3}]}`
      return json(
        `{"report":"stock","rows":[${Array.from({ length: 20_000 }, (_, id) => row(id)).join(',')}]}`,
      )
    },
    '/graphql': () => json('{"data":{"products":[{"id":"7","name":"Red hat","price":24.90}]}}'),
    '/logo.png': () =>
      new Response(Buffer.from(PIXEL, 'base64'), { headers: { 'content-type': 'image/png' } }),
    '/webhooks/stripe': () =>
      isFixed
        ? json('{"received":true,"id":"evt_1Q3kTz","account_ref":12345678901234567890}')
        : json(
            '{"error":"Cannot read properties of undefined (reading \'email\')","at":"webhooks/stripe.ts:88","request":"evt_1Q3kTz"}',
            500,
          ),
    '/webhooks/github': () => json('{"queued":true,"job":8841}'),
    '/events': () =>
      new Response(
        'event: stock\ndata: {"sku":"hat-red-m","stock":31}\n\ndata: {"sku":"mug-blue","stock":0}\n\n',
        {
          headers: { 'content-type': 'text/event-stream' },
        },
      ),
  }
  const app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request, own) {
      const { pathname } = new URL(request.url)
      await Bun.sleep(TIMES_MS[pathname] ?? 2)
      if (pathname === '/ws/room/7' && own.upgrade(request)) return undefined
      const body = await request.text()
      if (request.method === 'POST' && pathname === '/login') return Response.redirect('/account', 303)
      // An event of Stripe that this shop has always understood.
      if (pathname === '/webhooks/stripe' && !body.includes('invoice.paid')) return json('{"received":true}')
      return answers[pathname]?.() ?? json('{"error":"not_found"}', 404)
    },
    websocket: {
      open: socket =>
        void socket.send('{"type":"welcome","room":7,"online":3,"resume":"r-88213009182736450011"}'),
      message: (socket, text) => void socket.send(`{"type":"ack","of":${String(text)}}`),
    },
  })
  const server = new TunnelServer({
    port: 0,
    host: '127.0.0.1',
    domains: [DOMAIN],
    publicUrl: `https://${DOMAIN}`,
    guarding: guarding(),
    admin: { port: 0, token: ADMIN_TOKEN, probeMs: 0 },
  })
  await server.start()
  const client = new TunnelClient({
    server: `http://127.0.0.1:${server.port}`,
    inspect: { maxBody: 262_144, rate: 0, secrets: ['password'] },
  })
  const at = { host: '127.0.0.1', port: app.port ?? 0 }
  await client.http({
    ...at,
    subdomain: 'shop',
    guard: { paths: { '/admin': { password: 'correct horse' } } },
  })
  const webhook = (provider: 'stripe' | 'github', secret: string) =>
    client.http({
      ...at,
      subdomain: provider === 'stripe' ? 'hooks' : 'builds',
      verify: { provider, secret, paths: [`/webhooks/${provider}`] },
    })
  await webhook('stripe', STRIPE)
  await webhook('github', GITHUB)
  await client.http({ ...at, subdomain: 'chat' })

  const visit = async (name: string, path: string, init: RequestInit = {}): Promise<void> => {
    const headers = { host: `${name}.${DOMAIN}`, ...(init.headers as Record<string, string>) }
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, {
      ...init,
      headers,
      redirect: 'manual',
    })
    await answer.bytes()
  }
  const stripe = (body: string) => {
    const now = Math.floor(Date.now() / 1_000)
    const v1 = createHmac('sha256', STRIPE).update(`${now}.${body}`).digest('hex')
    const headers = { ...JSON_TYPE, 'user-agent': 'Stripe/1.0', 'stripe-signature': `t=${now},v1=${v1}` }
    return visit('hooks', '/webhooks/stripe', { method: 'POST', body, headers })
  }
  const github = (event: string, body: string, secret = GITHUB) => {
    const v1 = createHmac('sha256', secret).update(body).digest('hex')
    const headers = { ...JSON_TYPE, 'x-github-event': event, 'x-hub-signature-256': `sha256=${v1}` }
    return visit('builds', '/webhooks/github', { method: 'POST', body, headers })
  }
  const event = (id: number, type: string) =>
    stripe(`{"id":"evt_${id}","type":"${type}","livemode":false,"data":{"object":{"id":"obj_${id}"}}}`)
  const post = (path: string, body: string, type = 'application/json', method = 'POST') =>
    visit('shop', path, {
      method,
      body,
      headers: { 'content-type': type, authorization: 'Bearer not-for-eyes' },
    })

  const sockets: WebSocket[] = []
  const chat = async (): Promise<void> => {
    const headers = { host: `chat.${DOMAIN}` }
    const socket = new WebSocket(`ws://127.0.0.1:${server.port}/ws/room/7`, { headers })
    sockets.push(socket)
    const answered = () => new Promise(resolve => socket.addEventListener('message', resolve, { once: true }))
    await answered()
    for (const text of ['{"type":"join","room":7,"user":"anna"}', '{"type":"read","upTo":9003}']) {
      const answer = answered()
      socket.send(text)
      await answer
    }
  }
  const day = [
    () => visit('shop', '/api/products?category=mugs'),
    () => event(8_842, 'charge.succeeded'),
    () => visit('shop', '/logo.png'),
    () => github('push', PUSH),
    () => visit('shop', '/search?q=rote+H%C3%BCte'),
  ]
  let next = 0
  return {
    server,
    client,
    fix: () => {
      isFixed = true
    },
    async morning() {
      await visit('shop', '/login')
      await post('/login', 'user=anna&password=hunter2', 'application/x-www-form-urlencoded')
      await github('issue_comment', '{"action":"created"}', 'another')
      await github('pull_request', '{"action":"opened","number":42}')
      await post(
        '/graphql',
        '{"operationName":"ProductList","query":"query ProductList($n: Int!) { products(first: $n) { id name price } }","variables":{"n":20}}',
      )
      await visit('shop', '/search?q=rote+H%C3%BCte')
      await visit('chat', '/events')
      await event(30, 'charge.succeeded')
      await event(31, 'invoice.created')
      await visit('shop', '/api/reports/stock')
      await post('/api/cart', CART)
      await post('/api/cart/91', CART, 'application/json', 'PUT')
      await visit('shop', '/api/cart/91/items/2', { method: 'DELETE' })
      await visit('shop', '/admin')
      await stripe(INVOICE)
      await github('push', PUSH)
      await event(37, 'customer.subscription.updated')
      await chat()
      await visit('shop', '/products')
      await visit('shop', '/assets/app-4f2c.js')
      await visit('shop', '/logo.png')
      await visit('shop', '/api/products?category=hats&sort=price&page=1&utm_source=newsletter')
    },
    visit,
    more: () => day[next++ % day.length]!(),
    async stop() {
      for (const socket of sockets) socket.close()
      await client.disconnect()
      await server.stop()
      await app.stop(true)
    },
  }
}
