// Explains TLS errors of a server or an app, from the code and the message of the runtime.

/** A reason, and the next step if that of the error code does not fit. */
export interface TlsFault {
  readonly reason: string
  readonly action?: string
}

/** Which end was dialled, because the user fixes each in another way. */
export type FarEnd = 'server' | 'app'

type Fault = readonly [pattern: RegExp, reason: string, actions?: Readonly<Record<FarEnd, string>>]

const UNTRUSTED: readonly Fault[] = [
  [
    /CERT_HAS_EXPIRED/,
    'it has expired',
    {
      server: 'Its operator has to renew it; if the clock of this machine is wrong, set it.',
      app: 'Renew it, or accept any certificate of the app with --app-insecure (appInsecure); if the clock of this machine is wrong, set it.',
    },
  ],
  [
    /CERT_NOT_YET_VALID/,
    "it is not valid yet, by this machine's clock",
    { server: 'Set the clock.', app: 'Set the clock.' },
  ],
  [
    /ALTNAME|HOSTNAME_MISMATCH/,
    'it is for another name',
    {
      server: 'Give --server a name that the certificate has.',
      app: 'Give a name that the certificate has with --app-server-name (appServerName).',
    },
  ],
  [
    /CERT_REVOKED/,
    'it was revoked',
    { server: 'Its operator has to get another one.', app: 'Get another one for the app.' },
  ],
  [/SELF_SIGNED|UNABLE_TO_|ISSUER|CERT_UNTRUSTED/, 'no authority that this system trusts has signed it'],
]

const ALERTS: readonly Fault[] = [
  [
    /UNRECOGNIZED_NAME/i,
    'the server has no certificate for this name',
    {
      server: "Give --server one of the server's domains.",
      app: 'Give a name that the app has with --app-server-name (appServerName).',
    },
  ],
  [
    /ALERT_INTERNAL_ERROR/i,
    'the server could not get a certificate for this name',
    {
      server: "The server's output says why.",
      app: 'Give a name that the app has with --app-server-name (appServerName), or look at its log.',
    },
  ],
  [
    /ALERT_PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL/i,
    'it speaks other versions of TLS',
    { server: 'It has to speak TLS 1.2 or 1.3.', app: 'It has to speak TLS 1.2 or 1.3.' },
  ],
  [
    /HANDSHAKE_FAILURE/i,
    'it has no cipher of TLS in common with this machine',
    { server: 'Its operator chooses them.', app: 'The settings of the app name them.' },
  ],
  [
    /CERTIFICATE_REQUIRED/i,
    'it wants a certificate of the client',
    {
      server: 'Give it with --cert and --key.',
      app: 'Apps get none from here: let the app do without, or share it with `localtunnels tls`.',
    },
  ],
]

/** Returns why a certificate is not trusted, followed by the runtime's message if it says more. */
export function distrustOf(code: string, message: string, end: FarEnd): TlsFault {
  if (code === 'ERR_TLS_CERT_PIN')
    return {
      reason: message.replace(`${code}: `, ''),
      action: 'The server has a new key, or is another one: ask its operator before you change --pin.',
    }
  const found = UNTRUSTED.find(([pattern]) => pattern.test(code))
  if (found === undefined) return { reason: message }
  return faultOf(found[1].concat(` (${message.replace(/\.$/, '')})`), found[2], end)
}

/**
 * Returns the meaning of a TLS alert from the far end. `undefined` for other errors. Node has the alert's name in the
 * code, Bun 1.4.5 in the message.
 */
export function alertOf(code: string, message: string, end: FarEnd): TlsFault | undefined {
  const found = ALERTS.find(([pattern]) => pattern.test(`${code} ${message}`))
  return found && faultOf(found[1].replace('the server', `the ${end}`), found[2], end)
}

function faultOf(reason: string, actions: Fault[2], end: FarEnd): TlsFault {
  return actions === undefined ? { reason } : { reason, action: actions[end] }
}
