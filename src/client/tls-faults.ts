// What is wrong with a server's TLS, in words: from the code and the message that a runtime has for it.

/** A reason, and what to do about it where that is not what its error code says. */
export interface TlsFault {
  readonly reason: string
  readonly action?: string
}

const UNTRUSTED: readonly (readonly [RegExp, string, action?: string])[] = [
  [
    /CERT_HAS_EXPIRED/,
    'it has expired',
    'Its operator has to renew it; if the clock of this machine is wrong, set it.',
  ],
  [/CERT_NOT_YET_VALID/, "it is not valid yet, by this machine's clock", 'Set the clock.'],
  [/ALTNAME|HOSTNAME_MISMATCH/, 'it is for another name', 'Give --server a name that the certificate has.'],
  [/CERT_REVOKED/, 'it was revoked', 'Its operator has to get another one.'],
  [/SELF_SIGNED|UNABLE_TO_|ISSUER|CERT_UNTRUSTED/, 'no authority that is trusted here has signed it'],
]

const ALERTS: readonly (readonly [RegExp, string, action?: string])[] = [
  [
    /UNRECOGNIZED_NAME/i,
    'the server has no certificate for this name',
    "Give --server one of the server's domains.",
  ],
  [
    /ALERT_INTERNAL_ERROR/i,
    'the server could not get a certificate for this name',
    "The server's output says why.",
  ],
  [
    /ALERT_PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL/i,
    'it speaks other versions of TLS',
    'It has to speak TLS 1.2 or 1.3.',
  ],
  [/HANDSHAKE_FAILURE/i, 'it has no cipher of TLS in common with this machine', 'Its operator chooses them.'],
  [/CERTIFICATE_REQUIRED/i, 'it wants a certificate of the client', 'Give it with --cert and --key.'],
]

/** Why a certificate is not trusted. What the runtime said follows, if it says more. */
export function distrustOf(code: string, message: string): TlsFault {
  if (code === 'ERR_TLS_CERT_PIN')
    return {
      reason: message.replace(`${code}: `, ''),
      action: 'The server has a new key, or is another one: ask its operator before you change --pin.',
    }
  const found = UNTRUSTED.find(([pattern]) => pattern.test(code))
  if (found === undefined) return { reason: message }
  return faultOf(found[1].concat(` (${message.replace(/\.$/, '')})`), found[2])
}

/** What an alert of the server means; `undefined`: another message. */
export function alertOf(message: string): TlsFault | undefined {
  const found = ALERTS.find(([pattern]) => pattern.test(message))
  return found && faultOf(found[1], found[2])
}

function faultOf(reason: string, action: string | undefined): TlsFault {
  return action === undefined ? { reason } : { reason, action }
}
