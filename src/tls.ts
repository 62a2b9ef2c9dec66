// Entry `localtunnels/tls`: the sources of a server's certificates. Loaded only by programs that use them.

export { AcmeDns, type AcmeDnsAccount, type AcmeDnsOptions } from './certificates/acme/dns/acme-dns.ts'
export { Cloudflare, type CloudflareOptions } from './certificates/acme/dns/cloudflare.ts'
export { ExecHook, type ExecHookOptions } from './certificates/acme/dns/exec.ts'
export type { DnsProvider, DnsRecord } from './certificates/acme/dns/provider.ts'
export { Rfc2136, type Rfc2136Options } from './certificates/acme/dns/rfc2136.ts'
export { Route53, type Route53Options } from './certificates/acme/dns/route53.ts'
export type { ExternalAccount } from './certificates/acme/jws.ts'
export {
  AcmeCertificates,
  type AcmeCertificatesOptions,
  type AcmeEvents,
  LETS_ENCRYPT,
  LETS_ENCRYPT_STAGING,
  type NameOwner,
  type SharedAnswers,
} from './certificates/acme.ts'
export { type CertificateFile, FileCertificates, type FileCertificatesEvents } from './certificates/files.ts'
export type { IssuerEvents } from './certificates/issuer.ts'
export type { Certificate, Certificates, ChallengeResponses } from './certificates.ts'
export type { CertificateStore } from './store.ts'
export { CopiedCertificates } from './stores/copied-certificates.ts'
export { SqliteCertificates } from './stores/sqlite-certificates.ts'
