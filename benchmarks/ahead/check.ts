// Before a tunnel is measured it must be right: same bytes down, same bytes up, same status for what is not there.

import { request } from '../measure/ports.ts'
import { FILE_SIZES, fileBytes } from '../origin/origin.ts'
import type { Tunnel } from '../peers/peer.ts'

const UPLOAD_BYTES = 1_000_003

export async function checkTunnel(tunnel: Tunnel): Promise<void> {
  for (const [origin, endpoint] of Object.entries(tunnel.endpoints)) {
    for (const name of ['20', '1k', '64k', '1m']) {
      const response = await request(endpoint, `/${name}`)
      const body = new Uint8Array(await response.arrayBuffer())
      const right = response.status === 200 && Buffer.compare(body, fileBytes(FILE_SIZES[name]!)) === 0
      if (!right)
        throw new Error(
          `GET /${name} of ${origin}: status ${response.status}, ${body.length} bytes, not the file`,
        )
    }
    const missing = await request(endpoint, '/not-there')
    await missing.arrayBuffer()
    if (missing.status !== 404)
      throw new Error(`GET /not-there of ${origin}: status ${missing.status} instead of 404`)
  }
  const { sink } = tunnel.endpoints
  if (!sink) return
  const body = fileBytes(UPLOAD_BYTES + 1).subarray(1)
  const response = await request(sink, '/sha', { method: 'POST', body: new Uint8Array(body) })
  const said = await response.text()
  const expected = new Bun.CryptoHasher('sha256').update(body).digest('hex')
  if (said !== expected)
    throw new Error(`POST of ${UPLOAD_BYTES} bytes: other bytes arrived (${said.slice(0, 80)})`)
}
