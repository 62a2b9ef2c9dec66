// The public API of localtunnels.

export type { Branding } from './branding.ts'
export * from './client.ts'
export { defineConfig } from './config/define.ts'
export type { ClientFile, ServerFile } from './config/input.ts'
export { type Countries, type CountryFile, openCountries } from './countries.ts'
export type {
  CertificateRule,
  GuardOptions,
  JwtRule,
  LinkOptions,
  LoginRule,
  PathSignInMethods,
  RateRule,
  SignInMethods,
  WebhookRule,
} from './guard.ts'
export type { InboxStore } from './inbox.ts'
export {
  alternativeNames,
  calculateBackoff,
  formatUrl,
  generateId,
  generateSubdomain,
  headersToRecord,
  isReservedName,
  isValidPort,
  isValidSubdomain,
  parseHost,
  slugOf,
} from './names.ts'
export type { AuditEntry, AuditLog, Ban, OperationsStore, Span, Traffic } from './operations.ts'
export type {
  Admittance,
  Allotment,
  AskedCertificate,
  ExchangeContext,
  ForTunnels,
  Guard,
  GuardedTunnel,
  GuardMaker,
  HeaderLine,
  Middleware,
  Observer,
  Outcome,
  Pass,
  Reading,
  Refusal,
  Seen,
  UsedMarks,
  Verdict,
  VisitorCertificate,
  VisitorHead,
} from './plugin.ts'
export { type AccessLog, type AccessLogOptions, accessLog } from './plugins/access-log.ts'
export { type GuardingOptions, guarding, type Issuer, type LoginProvider } from './plugins/guarding.ts'
export { type JwtTokenRule, jwtTokens } from './plugins/jwt-tokens.ts'
export { type OpenTelemetryOptions, openTelemetry } from './plugins/open-telemetry.ts'
export { type RateOptions, rate } from './plugins/rate.ts'
export type {
  ServerLimits,
  TokenRule,
  TunnelServerEvents,
  TunnelServerOptions,
} from './server/settings/options.ts'
export type { AdminOptions, InboxOptions } from './server/settings/part-options.ts'
export type { ServerStats } from './server/settings/stats.ts'
export type { BreakerRule, TunnelRule } from './server/settings/tunnel-rule.ts'
export type { UsedLinks } from './store.ts'
export { openInbox, openOperations, openUsedLinks } from './stores/open.ts'
export type { ReadToken, TokenFault, TokenIdentity, TokenReader, TokenScope } from './tokens.ts'
export { TunnelServer } from './tunnel-server.ts'
