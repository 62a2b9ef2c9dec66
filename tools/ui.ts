// Serves both pages of src/ui, as they are written: a change shows at once. Behind them is the shop of tools/shop.ts.
//
//   bun run ui [--still]      prints two addresses; --still: nothing comes behind the morning's requests

import { proofOf } from '../src/parts/inspect/access.ts'
import admin from '../src/ui/admin/index.html'
import inspector from '../src/ui/inspector/index.html'
import { ADMIN_TOKEN, openShop } from './shop.ts'

const MORE_MS = 2_500

const shop = await openShop()
await shop.morning()
if (!process.argv.includes('--still')) setInterval(() => void shop.more(), MORE_MS)

/** `base`: of the real one, whose API the page asks. `token`: the inspector's, which the page wants proven for its own origin. */
function serve(page: Bun.HTMLBundle, port: number, base: string, token?: string): string {
  const api = async (request: Request) => {
    const { origin, pathname, search, searchParams } = new URL(request.url)
    if (token !== undefined && pathname === '/api/v1/proof')
      return Response.json({ proof: proofOf(token, origin, searchParams.get('nonce') ?? '') })
    const headers = new Headers(request.headers)
    // The page came from another port than the API's.
    for (const name of ['host', 'origin', 'referer', 'sec-fetch-site']) headers.delete(name)
    const body = request.body === null ? undefined : await request.bytes()
    return fetch(`${base}${pathname}${search}`, { method: request.method, headers, ...(body && { body }) })
  }
  const own = Bun.serve({
    port,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    development: { hmr: true },
    routes: { '/': page, '/api/*': api },
  })
  return own.url.href
}

const [base = '', token = ''] = (shop.client.inspectorUrl ?? '').split('/#')
console.log(`inspector  ${serve(inspector, 4_141, base, token)}#${token}`)
console.log(`admin      ${serve(admin, 4_142, shop.server.adminUrl ?? '')}   token ${ADMIN_TOKEN}`)
