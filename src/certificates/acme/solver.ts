// Contract: a way to prove to an authority that a name belongs to this server.

/** The check of one name. */
export interface Challenge {
  /** The name without `*.`. */
  readonly name: string
  readonly token: string
  /** The proof: the token and the thumbprint of the account's key. */
  readonly keyAuthorization: string
}

export interface Solver {
  readonly type: 'http-01' | 'tls-alpn-01' | 'dns-01'
  /**
   * Prepares the proofs. Resolves when the authority may check all of them. After a restart it is called again for the same ones.
   */
  present(challenges: readonly Challenge[], signal: AbortSignal): Promise<void>
  /** Withdraws the records of `present`, whether it resolved or not. Also called for records of an earlier process. */
  withdraw(challenges: readonly Challenge[]): Promise<void>
}
