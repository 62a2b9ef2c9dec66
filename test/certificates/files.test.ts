// Certificates from files: which one a name gets, and what happens when the files change.

import { beforeAll, expect, test } from 'bun:test'
import { mkdir, rename, rm, symlink } from 'node:fs/promises'
import { challengeCertificate } from '../../src/certificates/acme/pending-challenges.ts'
import { type CertificateFile, FileCertificates } from '../../src/certificates/files.ts'
import type { TunnelError } from '../../src/errors.ts'
import { SecureContexts } from '../../src/x509/contexts.ts'
import { type Certificate, makeCertificate } from '../support/certificates.ts'
import { describeWith } from '../support/needs.ts'
import { type Folder, folder } from '../support/programs.ts'
import { rejection } from '../support/rejection.ts'
import { deferred, within } from '../support/within.ts'

async function write(dir: Folder, name: string, { cert, key }: Certificate): Promise<CertificateFile> {
  const file = { cert: `${dir.path}/${name}.crt`, key: `${dir.path}/${name}.key` }
  await Bun.write(file.key, key)
  await Bun.write(file.cert, cert)
  return file
}

const nextError = (certificates: FileCertificates): Promise<TunnelError> => {
  const { promise, resolve } = deferred<TunnelError>()
  certificates.once('error', resolve)
  return within(promise, 'an error')
}
const nextReload = (certificates: FileCertificates) => {
  const { promise, resolve } = deferred<readonly string[]>()
  certificates.once('reloaded', ({ names }) => resolve(names))
  return within(promise, 'a reload')
}

describeWith(['openssl'], 'certificates from files', () => {
  let main: Certificate
  let shop: Certificate
  let other: Certificate
  beforeAll(async () => {
    main = await makeCertificate(['tunnel.test', '*.tunnel.test'])
    shop = await makeCertificate(['shop.tunnel.test'])
    other = await makeCertificate(['tunnel.test', 'new.test'])
  })

  test('an exact name goes before a wildcard; the first file is for every other name, and for none', async () => {
    await using dir = await folder('files')
    const files = [
      await write(dir, 'main', main),
      await write(dir, 'shop', shop),
      await write(dir, 'other', other),
    ]
    const certificates = await FileCertificates.open(files)
    const of = (name: string) =>
      [main, shop, other].findIndex(({ cert }) => cert === certificates.find(name)?.cert)
    expect(of('tunnel.test')).toBe(0)
    expect(of('any.tunnel.test')).toBe(0)
    expect(of('SHOP.Tunnel.test.')).toBe(1)
    expect(of('new.test')).toBe(2)
    expect(of('a.b.tunnel.test')).toBe(0)
    expect(of('unknown.example')).toBe(0)
    expect(of('')).toBe(0)
    expect(certificates.find('shop.tunnel.test')).toBe(certificates.find('shop.tunnel.test')!)
    certificates.close()
  })

  test('a pair that does not fit, an empty file, a missing one and a huge one are refused by name', async () => {
    await using dir = await folder('files')
    const { cert, key } = await write(dir, 'main', main)
    const foreign = await write(dir, 'shop', shop)
    const empty = `${dir.path}/empty`
    const huge = `${dir.path}/huge`
    await Bun.write(empty, '')
    await Bun.write(huge, 'x'.repeat(1_048_577))
    for (const [file, words] of [
      [{ cert, key: foreign.key }, /The key does not belong/],
      [{ cert: empty, key }, /not a certificate in PEM/],
      [{ cert, key: empty }, /not a private key in PEM/],
      [{ cert: `${dir.path}/none`, key }, /none cannot be read/],
      [{ cert: huge, key }, /1048577 bytes/],
    ] as const) {
      expect(await rejection(FileCertificates.open([file]))).toMatchObject({
        code: 'TLS_INVALID',
        message: expect.stringMatching(words),
      })
    }
    expect(await rejection(FileCertificates.open([]))).toMatchObject({ code: 'OPTION_INVALID' })
  })

  test('files that change are served; a broken one is reported once and the one from before stays', async () => {
    await using dir = await folder('files')
    const file = await write(dir, 'main', main)
    const certificates = await FileCertificates.open([file, await write(dir, 'shop', shop)])
    const shopBefore = certificates.find('shop.tunnel.test')
    const broken = nextError(certificates)
    await Bun.write(file.cert, 'half a certifi')
    expect(await broken).toMatchObject({
      code: 'TLS_INVALID',
      message: expect.stringMatching(/main\.crt.*not a certificate/),
    })
    expect(certificates.find('tunnel.test')?.cert).toBe(main.cert)
    const errors: TunnelError[] = []
    certificates.on('error', error => errors.push(error))
    await certificates.reload()
    expect(errors).toEqual([])
    const reloaded = nextReload(certificates)
    await write(dir, 'main', other)
    expect(await reloaded).toEqual(['tunnel.test', 'new.test'])
    expect(certificates.find('new.test')?.cert).toBe(other.cert)
    // The names of the earlier one are gone with it.
    expect(certificates.find('any.tunnel.test')?.cert).toBe(other.cert)
    // What did not change is the same object, with the context that was made of it.
    expect(certificates.find('shop.tunnel.test')).toBe(shopBefore!)
    certificates.close()
  })

  test('links that are turned to another folder are followed, as certbot and Kubernetes do it', async () => {
    await using dir = await folder('files')
    for (const [name, certificate] of Object.entries({ one: main, two: other })) {
      await mkdir(`${dir.path}/${name}`)
      await Bun.write(`${dir.path}/${name}/tls.crt`, certificate.cert)
      await Bun.write(`${dir.path}/${name}/tls.key`, certificate.key)
    }
    await symlink('one', `${dir.path}/current`)
    await symlink('current/tls.crt', `${dir.path}/tls.crt`)
    await symlink('current/tls.key', `${dir.path}/tls.key`)
    const certificates = await FileCertificates.open([
      { cert: `${dir.path}/tls.crt`, key: `${dir.path}/tls.key` },
    ])
    const reloaded = nextReload(certificates)
    await symlink('two', `${dir.path}/next`)
    await rename(`${dir.path}/next`, `${dir.path}/current`)
    await reloaded
    expect(certificates.find('')?.cert).toBe(other.cert)
    certificates.close()
  })

  test('a certificate that has ended does not take the place of one that has not', async () => {
    await using dir = await folder('files')
    const certificates = await FileCertificates.open([await write(dir, 'main', main)])
    const refused = nextError(certificates)
    await write(dir, 'main', challengeCertificate('tunnel.test', 'any', Date.now() - 3 * 86_400_000))
    expect((await refused).message).toContain('main.crt ended on 2')
    expect(certificates.find('tunnel.test')?.cert).toBe(main.cert)
    certificates.close()
  })

  test('a file that is removed does not take its certificate along', async () => {
    await using dir = await folder('files')
    const file = await write(dir, 'main', main)
    const certificates = await FileCertificates.open([file])
    const missing = nextError(certificates)
    await rm(file.key)
    expect((await missing).message).toContain('main.key cannot be read')
    expect(certificates.find('tunnel.test')?.cert).toBe(main.cert)
    certificates.close()
  })

  test('a context is made once for each certificate, and not of one that cannot be used', () => {
    const contexts = new SecureContexts()
    expect(contexts.of(main)).toBe(contexts.of(main))
    expect(contexts.of({ ...main })).not.toBe(contexts.of(main))
    expect(() => contexts.of({ cert: main.cert, key: shop.key })).toThrow(
      expect.objectContaining({ code: 'TLS_INVALID' }),
    )
  })
})
