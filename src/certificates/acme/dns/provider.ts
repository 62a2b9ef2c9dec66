// Contract: who can put TXT records into a zone.

/** A TXT record with one text. */
export interface DnsRecord {
  /** In full, without the dot at its end: `_acme-challenge.example.com`, or where that leads by CNAME. */
  readonly name: string
  readonly value: string
}

/** Rejections are `TunnelError`s: `DNS_RECORD_FAILED` with the words of the provider. */
export interface DnsProvider {
  /**
   * The servers to ask whether a record is visible: `address` or `address:port`. Without it, those that the zone's NS
   * records name.
   */
  readonly servers?: readonly string[] | undefined
  /** Other texts of the same name stay: a name and its wildcard need one each. One that is there already is no error. */
  add(record: DnsRecord, signal: AbortSignal): Promise<void>
  /** One that is not there is no error. */
  remove(record: DnsRecord, signal: AbortSignal): Promise<void>
}
