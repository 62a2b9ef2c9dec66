// All tunnels, in the order in which tables show them.

import { refuse } from '../measure/suite.ts'
import { caddyHop, direct, haproxyHop, nginxHop } from './floors.ts'
import { classic, ferrotunnel, ferrotunnelStock, frpHttp, piko, sish } from './http.ts'
import { oursBinary, oursCli, oursCliPlain, oursJson, oursLibrary, oursPlain } from './ours.ts'
import type { Peer } from './peer.ts'
import { bore, chisel, frpBest, frpMux, frpStock, ratholeBest, ratholeStock, wstunnel } from './tcp.ts'

export const FLOORS: readonly Peer[] = [direct, nginxHop, haproxyHop, caddyHop]
export const OURS: readonly Peer[] = [oursLibrary, oursCli]
/** Bytes between ports may carry HTTP too. */
export const TCP_PEERS: readonly Peer[] = [
  ratholeBest,
  ratholeStock,
  bore,
  frpBest,
  frpMux,
  frpStock,
  chisel,
  wstunnel,
]
export const HTTP_PEERS: readonly Peer[] = [frpHttp, piko, ferrotunnel, ferrotunnelStock, sish, classic]

export const ALL: readonly Peer[] = [...FLOORS, ...OURS, oursBinary, oursJson, ...TCP_PEERS, ...HTTP_PEERS]
export const ACCELERATOR_OFF: readonly Peer[] = [oursPlain, oursCliPlain]

/** What a smoke run is content with. */
const SMOKE = ['direct', 'ours', 'ours-cli', 'rathole']

/** Of the tunnels given those that `--peers` names, or all but those without the accelerator; in a smoke run a few. */
export function choose(
  peers: readonly Peer[],
  {
    names,
    quick,
    known = ALL,
  }: { names?: readonly string[] | undefined; quick: boolean; known?: readonly Peer[] },
): readonly Peer[] {
  const all = [...peers, ...known]
  /** The tunnel of this name; if there is none, all whose names begin so: `frp` in all its ways. */
  const isMeant = (peer: Peer, wanted: string): boolean =>
    all.some(({ name }) => name === wanted) ? peer.name === wanted : peer.name.startsWith(wanted)
  const unknown = names?.find(name => !all.some(peer => isMeant(peer, name)))
  if (unknown !== undefined) {
    return refuse(`no tunnel is called ${unknown}; known: ${known.map(peer => peer.name).join(', ')}`)
  }
  if (names) return peers.filter(peer => names.some(name => isMeant(peer, name)))
  return peers.filter(({ name }) => (quick ? SMOKE.includes(name) : !name.endsWith('-off')))
}
