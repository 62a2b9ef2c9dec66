// Certificates signed by themselves, or by one of them, made by openssl for one test run.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import {
  alternativeNames,
  ECDSA_WITH_SHA256,
  keyPem,
  newKey,
  publicKeyInfo,
  signed,
} from '../../src/x509/certificate-request.ts'
import { integer, objectId, pem, sequence, set, tagged, time, utf8String } from '../../src/x509/der.ts'

export interface Certificate {
  /** PEM. */
  readonly cert: string
  readonly key: string
}

/** Makes a certificate whose subject is the first of `names`. `issuer` signs it; without one it signs itself. */
export async function makeCertificate(
  names: readonly string[],
  issuer?: Certificate,
  keyType: 'ec' | 'rsa' = 'ec',
): Promise<Certificate> {
  const folder = await mkdtemp(`${tmpdir()}/localtunnels-certificate-`)
  try {
    const signing: string[] = []
    if (issuer !== undefined) {
      await Bun.write(`${folder}/issuer.crt`, issuer.cert)
      await Bun.write(`${folder}/issuer.key`, issuer.key)
      signing.push('-CA', `${folder}/issuer.crt`, '-CAkey', `${folder}/issuer.key`)
    }
    const subject = ['-subj', `/CN=${names[0]}`]
    const alternatives = ['-addext', `subjectAltName=${names.map(name => `DNS:${name}`).join(',')}`]
    const key =
      keyType === 'rsa'
        ? ['-newkey', 'rsa:2048']
        : ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
    const kind = [...key, '-nodes', '-days', '2']
    const files = ['-keyout', `${folder}/own.key`, '-out', `${folder}/own.crt`]
    const args = ['openssl', 'req', '-x509', ...kind, ...files, ...subject, ...alternatives, ...signing]
    const made = Bun.spawn(args, { stderr: 'pipe' })
    if ((await made.exited) !== 0) throw new Error(await new Response(made.stderr).text())
    return {
      cert: await Bun.file(`${folder}/own.crt`).text(),
      key: await Bun.file(`${folder}/own.key`).text(),
    }
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** Signed by itself, for localhost. `openssl req` of Debian makes none that has ended. */
export function makeDated(fromMs: number, untilMs: number): Certificate {
  const key = newKey()
  const name = sequence(set(sequence(objectId('2.5.4.3'), utf8String('localhost'))))
  const body = sequence(
    tagged(0, integer(Uint8Array.of(2))),
    integer(Uint8Array.of(1)),
    ECDSA_WITH_SHA256,
    name,
    sequence(time(fromMs), time(untilMs)),
    name,
    publicKeyInfo(key),
    tagged(3, sequence(alternativeNames(['localhost']))),
  )
  return { cert: pem('CERTIFICATE', signed(body, key)), key: keyPem(key) }
}
