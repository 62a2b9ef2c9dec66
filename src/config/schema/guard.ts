// The keys of a guard in a configuration file, as rows: who may visit a service, and what the operator sets up for that.
// biome-ignore-all format: one line each

export const GUARD_ROWS = {
  jwt: {
    issuer: ['url', "Issuer of the tokens, one of the server's", 'required'],
    audience: ['text', 'Whom the tokens are for', 'required'],
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
    provider: ["'standard' | 'stripe' | 'github' | 'slack' | 'shopify'", 'Who sends the webhooks; `standard`: Standard Webhooks, as Svix and others do', 'required'],
    secret: ['secret text | list of secret text', 'As the provider shows it, such as `${STRIPE_SECRET}`. Several hold while one is replaced. It never leaves this machine', 'required'],
    'tolerance-seconds': ['0-86400', 'How old a signature may be; `0`: any', '300'],
    'max-body': ['bytes 1+', 'Bytes of a body that are kept until its signature is checked', '`1MiB`'],
  },
  ways: {
    password: ['secret text', 'Way in: a shared password of 6 characters or more', 'none'],
    bearer: ['set of secret token', 'Way in: tokens of machines, 16 characters or more each', 'none'],
    'bearer-header': ['header', 'Header whose value is that token, such as `X-Api-Key`; the app does not get it', '`Authorization: Bearer`'],
    jwt: ['table jwt', 'Way in: tokens of an issuer', 'none'],
    links: ['flag', 'Way in: signed links', '`false`'],
    login: ['table login', 'Way in: accounts of an OpenID Connect issuer', 'none'],
    certificate: ['table certificate', 'Way in: certificates that visitors show in TLS', 'none'],
  },
  'path-ways': {
    '...': 'ways',
    webhook: ['table webhook', 'Way in, the only one of its path: webhooks with a valid signature, which the client checks', 'none'],
  },
  guard: {
    allow: ['list of place', 'Wall: addresses, ranges and countries (`country:DE`, `country:unknown`) that may visit', 'all'],
    deny: ['list of place', 'Wall: addresses, ranges and countries that may not, even if `allow` has them', 'none'],
    rate: ['table rate', 'Wall: how often one address may ask', 'as often as it likes'],
    ttl: ['duration 1000+', 'Wall: how long the tunnel may be visited, from the start of the client', 'no end'],
    open: ['set of url-path', 'Paths that need no way in, such as `/health` and `/assets/*`; walls still hold', 'none'],
    '...': 'ways',
    paths: ['map route/path of table path-ways', 'Other ways in for a path and what is below it; the longest path wins', 'none'],
    cors: ['flag', 'Preflights of browsers reach the app without a way in', '`false`'],
    'request-headers': ['map header of header-value', "Header lines for the app, in place of the visitor's", 'none'],
    'response-headers': ['map header of header-value', 'Header lines added to answers', 'none'],
    session: ['duration 1000+', 'How long a browser stays signed in', '`12h`'],
    secret: ['secret token', 'Signs sessions and links, 32 characters or more: with the same one they outlive the client, and the clients of a pool agree', 'made up at each start'],
  },
  'login-provider': {
    issuer: ['url', 'URL of the OpenID Connect issuer', 'required'],
    'client-id': ['text', 'As what the server is registered there', 'required'],
    'client-secret': ['secret text', 'Its secret there', 'required'],
    scope: ['text', 'What is asked for', '`openid email`'],
  },
} as const
