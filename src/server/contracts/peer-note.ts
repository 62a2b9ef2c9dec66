// Contract: what servers of a cluster tell each other about a request.

import type { Refusal } from '../../plugin.ts'

/** The facts that servers of a cluster tell each other about a request. */
export interface PeerNote {
  /** The response if the tunnel is not here. Another server sent the request, so this one does not send it to a third. */
  readonly moved?: Refusal
  /** The owner for whose tunnels alone a stored webhook is meant. */
  readonly keptFor?: string
  /**
   * Whether the request is a copy for the clients of a pool at the receiving server. The server that copies it has
   * asked the guards.
   */
  readonly isCopy?: boolean
  /** Whether the visitor showed a verified certificate to the server that it connected to. */
  readonly isCertified?: boolean
  /** Whether the request came on the port that only servers of the cluster use, with their certificates. */
  readonly isPeers?: boolean
  /** A header line for its response, with its CRLF. */
  readonly answerLine?: Uint8Array
}
