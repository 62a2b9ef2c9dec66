// A certificate for localhost and 127.0.0.1, made once per run.

import { scratch } from './binary.ts'

export interface Certificate {
  readonly cert: string
  readonly key: string
  readonly certFile: string
  readonly keyFile: string
}

let made: Certificate | undefined

export function certificate(): Certificate {
  if (made) return made
  const files = scratch('certificate')
  const [certFile, keyFile] = [files.path('cert.pem'), files.path('key.pem')]
  const names = 'subjectAltName=DNS:localhost,DNS:*.localhost,DNS:*.test,IP:127.0.0.1'
  const flags = `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -addext ${names}`
  const { success, stderr } = Bun.spawnSync([
    'openssl',
    ...flags.split(' '),
    '-keyout',
    keyFile,
    '-out',
    certFile,
  ])
  if (!success) throw new Error(`openssl made no certificate: ${stderr.toString()}`)
  made = { cert: files.read('cert.pem'), key: files.read('key.pem'), certFile, keyFile }
  return made
}
