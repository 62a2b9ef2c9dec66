// Contract: what a request is that comes from no visitor of this server, or is to be sent to another server.

/** What a request is besides. */
export interface PeerNote {
  /** A webhook that was kept for the tunnels of this owner. */
  readonly keptFor?: string
  /** For the clients that the other server has itself. */
  readonly isCopy?: boolean
}
