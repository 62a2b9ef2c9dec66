// Finds out why nothing responds at a port of this machine: nothing listens there, or this user may not.

import { once } from 'node:events'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { lowPortAdvice } from '../../sockets/low-ports.ts'
import type { Check } from './checks.ts'

/**
 * Returns a note for that fault. `undefined` if the address is another machine's, or something listens there by now.
 */
export async function checkOwnPort(address: string, port: number): Promise<Check | undefined> {
  const own = Object.values(networkInterfaces()).flatMap(entries => entries ?? [])
  if (!own.some(entry => entry.address === address)) return undefined
  const what = 'port'
  const listener = createServer()
  try {
    listener.listen(port, address)
    await once(listener, 'listening')
    const found = `${address} is this machine, and nothing listens on port ${port}`
    return { verdict: 'note', what, found, fix: 'Start the server: localtunnels server' }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code !== 'EACCES') return undefined
    const found = `${address} is this machine, and this user may not listen on port ${port}`
    return { verdict: 'note', what, found, fix: lowPortAdvice(process.execPath) }
  } finally {
    listener.close()
  }
}
