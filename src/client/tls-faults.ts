// What is wrong with a server's TLS, in words: from the code and the message that a runtime has for it.

const WORDS: readonly (readonly [RegExp, string])[] = [
  [/CERT_HAS_EXPIRED/, 'it has expired'],
  [/CERT_NOT_YET_VALID/, "it is not valid yet, by this machine's clock"],
  [/ALTNAME|HOSTNAME_MISMATCH/, 'it is for another name'],
  [/CERT_REVOKED/, 'it was revoked'],
  [/SELF_SIGNED|UNABLE_TO_|ISSUER|CERT_UNTRUSTED/, 'no authority that is trusted here has signed it'],
]

/** Why a certificate is not trusted. What the runtime said follows, if it says more. */
export function distrustOf(code: string, message: string): string {
  const words = WORDS.find(([pattern]) => pattern.test(code))?.[1]
  return words === undefined ? message : `${words} (${message})`
}

/** What an alert of the server means; `undefined`: another message. */
export function alertOf(message: string): string | undefined {
  if (/UNRECOGNIZED_NAME/i.test(message)) return 'the server has no certificate for this name'
  if (/ALERT_INTERNAL_ERROR/i.test(message))
    return 'the server could not get a certificate for this name: its output says why'
  if (/ALERT_PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL/i.test(message)) return 'it speaks other versions of TLS'
  if (/HANDSHAKE_FAILURE/i.test(message)) return 'it has no cipher of TLS in common with this machine'
  if (/CERTIFICATE_REQUIRED/i.test(message)) return 'it wants a certificate of the client: --cert and --key'
  return undefined
}
