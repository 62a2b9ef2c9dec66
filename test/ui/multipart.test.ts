// Parts of a form, by bytes.

import { expect, test } from 'bun:test'
import { partsOf } from '../../src/ui/parts/multipart.ts'

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')

test('parts as a browser writes them, with every byte that there is', async () => {
  const bytes = Uint8Array.from({ length: 512 }, (_, index) => index)
  const form = new FormData()
  form.set('grün', 'ä\r\n--b')
  form.set('file', new File([bytes], 'a "b".bin', { type: 'application/x-own' }))
  form.set('empty', '')
  const request = new Request('http://app', { method: 'POST', body: form })
  const type = request.headers.get('content-type') ?? ''
  const parts = partsOf(new Uint8Array(await request.arrayBuffer()), type) ?? []
  expect(parts.map(({ name }) => name)).toEqual(['grün', 'file', 'empty'])
  expect(Buffer.from(parts[0]?.bytes ?? []).toString()).toBe('ä\r\n--b')
  expect(parts[1]?.type).toBe('application/x-own')
  expect(parts[1]?.bytes).toEqual(bytes)
  expect(parts[2]?.bytes.length).toBe(0)
})

test('a preamble, an epilogue, a quoted boundary, a body that was cut, and one that has no parts', () => {
  const type = 'multipart/form-data; boundary="a b"'
  const of = (body: string, as = type) =>
    partsOf(Buffer.from(body, 'latin1'), as)?.map(({ name, bytes }) => [name, text(bytes)])
  const part = 'Content-Disposition: form-data; name="x"\r\n\r\none'
  expect(of(`before\r\n--a b\r\n${part}\r\n--a b--\r\nafter`)).toEqual([['x', 'one']])
  expect(of(`--a b\r\n${part}\r\n--a b\r\n${part} and mo`)).toEqual([
    ['x', 'one'],
    ['x', 'one and mo'],
  ])
  expect(of(`--a b\r\n${part}\r\n--a b\r\nContent-Dispo`)).toEqual([['x', 'one']])
  expect(of('--a b--\r\n')).toEqual([])
  expect(of('nothing')).toBeUndefined()
  expect(of(`--a b\r\n${part}`, 'multipart/form-data')).toBeUndefined()
})
