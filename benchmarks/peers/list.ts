// All peers, in the order in which tables show them.

import { bore } from './bore.ts'
import { chisel } from './chisel.ts'
import { classic } from './classic.ts'
import { direct } from './direct.ts'
import { existing } from './existing.ts'
import { ferrotunnel } from './ferrotunnel.ts'
import { frpHttp, frpNoMux, frpTcp } from './frp.ts'
import { cloudflared, expose, ngrok } from './internet.ts'
import { oursJson, oursStreams, oursUnspliced } from './ours.ts'
import type { Peer } from './peer.ts'
import { piko } from './piko.ts'
import { rathole } from './rathole.ts'

export const PEERS: readonly Peer[] = [
  direct,
  oursStreams,
  oursUnspliced,
  oursJson,
  rathole,
  bore,
  frpTcp,
  frpNoMux,
  frpHttp,
  chisel,
  ferrotunnel,
  piko,
  classic,
  existing,
]

/** Looked for and tried, but their tunnels run through servers of others: never beside loopback in one table. */
export const INTERNET_PEERS: readonly Peer[] = [cloudflared, ngrok, expose]

/** Peers by name or beginning of a name: `frp` means all three ways. */
export function choose(names: readonly string[]): readonly Peer[] {
  for (const name of names) {
    if (!PEERS.some(peer => peer.name.startsWith(name))) {
      throw new Error(`no peer is called ${name}; known: ${PEERS.map(peer => peer.name).join(', ')}`)
    }
  }
  return PEERS.filter(peer => names.some(name => peer.name.startsWith(name)))
}
