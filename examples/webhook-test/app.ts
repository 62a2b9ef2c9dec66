import { createHmac, timingSafeEqual } from 'node:crypto'

const SECRET = process.env.STRIPE_SECRET ?? 'whsec_test'
export const paid: string[] = []

/** The app: notes invoices that are paid, when Stripe says so. */
export async function app(request: Request): Promise<Response> {
  const body = await request.text()
  const signature = request.headers.get('stripe-signature') ?? ''
  const [, time = '', given = ''] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature) ?? []
  const expected = createHmac('sha256', SECRET).update(`${time}.${body}`).digest()
  if (given === '' || !timingSafeEqual(Buffer.from(given, 'hex'), expected))
    return new Response('who is this?', { status: 400 })
  const event = JSON.parse(body)
  if (event.type === 'invoice.paid') paid.push(event.data.object.id)
  return new Response('ok')
}

if (import.meta.main) Bun.serve({ port: 3000, fetch: app })
