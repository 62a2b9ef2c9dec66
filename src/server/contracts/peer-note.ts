// Contract: what servers of a cluster say to each other of a request.

import type { Refusal } from '../../plugin.ts'

/** What a request is besides one of a visitor's. */
export interface PeerNote {
  /** Another server sent it here, so it goes to no other. What is answered when its tunnel is not here. */
  readonly moved?: Refusal
  /** A webhook that was kept for the tunnels of this owner. */
  readonly keptFor?: string
  /** A copy for the clients of a pool that the server it goes to has itself. The server that copies it has asked the guards. */
  readonly isCopy?: boolean
  /** Whether its visitor showed a client's certificate where it came in, and it was verified. */
  readonly isCertified?: boolean
  /** It came where only servers of the cluster come in, by their certificates. */
  readonly isPeers?: boolean
  /** A header line for its answer, with its CRLF. */
  readonly answerLine?: Uint8Array
}
