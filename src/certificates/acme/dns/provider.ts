// Contract: sets TXT records in a zone.

/** A TXT record with one text. */
export interface DnsRecord {
  /** The full name without the dot at its end: `_acme-challenge.example.com`, or the target of its CNAME. */
  readonly name: string
  readonly value: string
}

/** Sets records. Rejects with a `TunnelError`: `ACME_CHALLENGE_FAILED` with the provider's own words. */
export interface DnsProvider {
  /** The servers to ask whether a record is visible: `address` or `address:port`. Absent: those in the zone's NS records. */
  readonly servers?: readonly string[] | undefined
  /**
   * Adds a record. Keeps other texts of the same name, because a name and its wildcard need one each. It is not an
   * error if the record is there already.
   */
  add(record: DnsRecord, signal: AbortSignal): Promise<void>
  /** Removes a record. It is not an error if there is none. */
  remove(record: DnsRecord, signal: AbortSignal): Promise<void>
}
