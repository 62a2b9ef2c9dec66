// The keys of a guard in a configuration file, as rows: who may visit a service, and what the operator sets up for that.
// biome-ignore-all format: one line each

export const GUARD_ROWS = {
  jwt: {
    issuer: ['url', "Issuer of the tokens, one of the server's", 'required'],
    audience: ['text', 'Audience of the tokens', 'required'],
    claims: ['map text/claim of text', 'Claims that must have these values; `*` stands for any characters', 'any'],
  },
  login: {
    issuer: ['url', 'OpenID Connect issuer, one for which the server has a login', 'required'],
    emails: ['set of email-pattern', 'Verified addresses that may visit, such as `anna@example.com` or `*@example.com`', 'every account'],
  },
  certificate: {
    ca: ['file', 'PEM file of the authorities that sign them', 'required'],
    names: ['set of text', 'Common names, DNS names or e-mail addresses that may visit; `*@example.com`', 'all'],
    subject: ['map text/field of text', 'Fields of the subject that must have these values, such as `OU`', 'any'],
    fingerprints: ['set of text', 'SHA-256 of the certificates that may visit, in hexadecimal', 'any'],
  },
  rate: {
    limit: ['1-1000000', 'Requests, or connections, of one address in a window', 'required'],
    window: ['duration 1000+', 'The window, at most `24h`', 'required'],
  },
  webhook: {
    provider: ["'standard' | 'stripe' | 'github' | 'slack' | 'shopify'", 'Provider of the webhooks; `standard`: Standard Webhooks, as Svix and others use', 'required'],
    secret: ['secret text | list of secret text', 'Secret, as the provider shows it, such as `${STRIPE_SECRET}`. It never leaves this machine', 'required'],
    'tolerance-seconds': ['0-86400', 'Maximum age of a signature; `0`: any', '300'],
    'max-body': ['bytes 1+', 'Stored bytes of a body until its signature is checked', '`1MiB`'],
  },
  ways: {
    password: ['secret text', 'Sign-in method: a shared password of at least 6 characters', 'none'],
    bearer: ['set of secret token', 'Sign-in method: tokens of machines, each of at least 16 characters', 'none'],
    'bearer-header': ['header', 'Header whose value is that token, such as `X-Api-Key`', '`Authorization: Bearer`'],
    jwt: ['table jwt', 'Sign-in method: tokens of an issuer', 'none'],
    links: ['flag', 'Sign-in method: signed links', '`false`'],
    login: ['table login', 'Sign-in method: accounts of an OpenID Connect issuer', 'none'],
    certificate: ['table certificate', 'Sign-in method: certificates that visitors show in TLS', 'none'],
  },
  'path-ways': {
    '...': 'ways',
    webhook: ['table webhook', 'Only method of its path: webhooks with a valid signature, which the client checks', 'none'],
  },
  guard: {
    allow: ['list of place', 'Access rule: addresses and ranges that may visit', 'all'],
    deny: ['list of place', 'Access rule: addresses and ranges that may not, even if `allow` has them', 'none'],
    rate: ['table rate', 'Access rule: rate of requests per address', 'as often as it likes'],
    ttl: ['duration 1000+', 'Access rule: time for which the tunnel may be visited, from the start of the client', 'no end'],
    open: ['set of url-path', 'Paths that need no sign-in, such as `/health` and `/assets/*`; access rules still apply', 'none'],
    '...': 'ways',
    paths: ['map route/path of table path-ways', 'Other sign-in methods for a path and those below it; the longest path wins', 'none'],
    cors: ['flag', 'Whether preflights of browsers reach the app without a sign-in', '`false`'],
    'request-headers': ['map header of header-value', "Header lines for the app, which replace the visitor's", 'none'],
    'response-headers': ['map header of header-value', 'Header lines added to responses', 'none'],
    session: ['duration 1000+', 'Time for which a browser stays signed in', '`12h`'],
    secret: ['secret token', 'Key of sessions and links, at least 32 characters: with the same one they outlive the client', 'made up at each start'],
  },
  'login-provider': {
    issuer: ['url', 'URL of the OpenID Connect issuer', 'required'],
    'client-id': ['text', 'Id of the server at the issuer', 'required'],
    'client-secret': ['secret text', 'Its secret at the issuer', 'required'],
    scope: ['text', 'Scope to request', '`openid email`'],
  },
} as const
