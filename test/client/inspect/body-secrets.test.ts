// Secrets in forms and JSON: masked in what is shown and copied, and back in what is sent again.

import { expect, test } from 'bun:test'
import { maskedForm, unmaskedForm } from '../../../src/parts/inspect/form-secrets.ts'
import { inspectSettings } from '../../../src/parts/inspect/settings.ts'

const JSON_TYPE = 'application/json; charset=utf-8'
const FORM_TYPE = 'application/x-www-form-urlencoded'
const settings = inspectSettings({ secrets: ['Api-Key', 'pin'] })
const masked = (text: string, type: string) =>
  Buffer.from(maskedForm(Buffer.from(text), type, settings!.secrets)).toString()

test('a password is masked without being named, in a form and in JSON; so is what the user names', () => {
  expect(masked('user=anna&password=hunter2', FORM_TYPE)).toBe('user=anna&password=••••••')
  expect(masked('{"user":"anna","Password":"hunter2"}', JSON_TYPE)).toBe(
    '{"user":"anna","Password":"••••••"}',
  )
  expect(masked('{"a":{"api-key" : "k\\"ey","n":[1.0,{"api-key":""}]}}', 'application/vnd.api+json')).toBe(
    '{"a":{"api-key" : "••••••","n":[1.0,{"api-key":"••••••"}]}}',
  )
})

test('only values of such names are masked: not a text that looks like one, not another type, not the rest', () => {
  for (const text of [
    '{"text":"\\"password\\":\\"x\\"","password":{"a":"b"},"list":["password",":","x"]}',
    '["password", "x"]',
    '{"grüße":"ü","n":12345678901234567890,"n":1e400}',
    'password',
    '',
  ])
    expect(masked(text, JSON_TYPE)).toBe(text)
  expect(masked('{"password":"x"}', 'text/plain')).toBe('{"password":"x"}')
})

test('a name is found however it is written, and a number is a value like another', () => {
  const named = inspectSettings({ secrets: ['clé', 'pin'] })!.secrets
  const hidden = (text: string, type: string) =>
    Buffer.from(maskedForm(Buffer.from(text), type, named)).toString()
  expect(hidden('{"p\\u0061ssword":"x","cl\\u00e9":"y","CLÉ":"z"}', JSON_TYPE)).toBe(
    '{"p\\u0061ssword":"••••••","cl\\u00e9":"••••••","CLÉ":"••••••"}',
  )
  expect(hidden('[{"pin":1234,"n":1},{"pin" : -1.5e3}]', JSON_TYPE)).toBe(
    '[{"pin":"••••••","n":1},{"pin" : "••••••"}]',
  )
  expect(hidden('{"pin":12', JSON_TYPE)).toBe('{"pin":"••••••"')
  const part = (name: string, value: string) =>
    `--b\r\nContent-Disposition: form-data; name=${name}\r\n\r\n${value}\r\n--b--`
  for (const name of ['pin', '"clé"'])
    expect(hidden(part(name, 'x'), 'multipart/form-data; boundary=b')).toBe(part(name, '••••••'))
})

test('a body that is cut within a secret shows nothing of it', () => {
  expect(masked('{"user":"anna","password":"hunt', JSON_TYPE)).toBe('{"user":"anna","password":"••••••')
})

test('a mask that is sent back is the captured value, and an edited value is that', () => {
  const captured = '{"password":"grün1","b":2,"c":[{"password":"two"}]}'
  const edited = masked(captured, JSON_TYPE).replace('"b":2', '"b":3')
  const back = (text: string) =>
    Buffer.from(unmaskedForm(Buffer.from(text), Buffer.from(captured), JSON_TYPE)).toString()
  expect(back(edited)).toBe(captured.replace('"b":2', '"b":3'))
  expect(back('{"password":"new"}')).toBe('{"password":"new"}')
  const number = '{"password":1234,"b":2}'
  expect(
    Buffer.from(
      unmaskedForm(Buffer.from(masked(number, JSON_TYPE)), Buffer.from(number), JSON_TYPE),
    ).toString(),
  ).toBe(number)
})

test('a megabyte of JSON takes no second', () => {
  const text = JSON.stringify({
    list: Array.from({ length: 50_000 }, (_, n) => ({ id: `${n}`, t: 'x\\"y' })),
  })
  expect(masked(text, JSON_TYPE)).toBe(text)
  expect(masked(`{"password":"${'x'.repeat(2_000_000)}"}`, JSON_TYPE)).toBe('{"password":"••••••"}')
})
