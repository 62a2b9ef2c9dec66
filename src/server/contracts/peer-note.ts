// Contract: what servers of a cluster say to each other of a request.

import type { Refusal } from '../../plugin.ts'

/** The facts that servers of a cluster tell each other about a request. */
export interface PeerNote {
  /** The response if its tunnel is not here. Another server sent the request, so it goes to no third one. */
  readonly moved?: Refusal
  /** A webhook that was kept for the tunnels of this owner. */
  readonly keptFor?: string
  /** A copy for the clients of a pool that the server it goes to has itself. The server that copies it has asked the guards. */
  readonly isCopy?: boolean
  /** Whether its visitor showed a client's certificate where it came in, and it was verified. */
  readonly isCertified?: boolean
  /** Whether it came on a port that only servers of the cluster use, with their certificates. */
  readonly isPeers?: boolean
  /** A header line for its response, with its CRLF. */
  readonly answerLine?: Uint8Array
}
