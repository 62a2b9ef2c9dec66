// Contract: who can put TXT records into a zone.

/** A TXT record with one text. */
export interface DnsRecord {
  /** The name in full, without the dot at its end: `_acme-challenge.example.com`, or where a CNAME points it. */
  readonly name: string
  readonly value: string
}

/** Rejections are `TunnelError`s: `ACME_CHALLENGE_FAILED` with the words of the provider. */
export interface DnsProvider {
  /**
   * The servers to ask whether a record is visible: `address` or `address:port`. Without it, those that the zone's NS
   * records name.
   */
  readonly servers?: readonly string[] | undefined
  /**
   * Adds a record. Keeps other texts of the same name, because a name and its wildcard need one each. It is not an error if
   * the record is
   * there already.
   */
  add(record: DnsRecord, signal: AbortSignal): Promise<void>
  /** Removes a record. It is not an error if there is none. */
  remove(record: DnsRecord, signal: AbortSignal): Promise<void>
}
