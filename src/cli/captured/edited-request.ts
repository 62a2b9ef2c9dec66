// Shows a captured request as a text for an editor, and reads the edited text. A value that is still the mask means
// the captured value.

import { optionInvalid, TunnelError } from '../../errors.ts'
import type { Edit, ExchangeDetail } from '../../exchange.ts'

const GUIDE = [
  '# Edit, save and close: this is sent to the app. Lines that begin with # above the request are left out.',
  '# An empty file sends nothing. •••••• stands for the secret that was sent. Lengths follow from the body.',
]
const KEPT_BODY = '# The body is not text, and stays unchanged unless you write one below.'

/** Returns the text to edit. `body`: as sent; `undefined` if it is not a text, or has a coding. */
export function editableText({ request }: ExchangeDetail, body: string | undefined): string {
  if (request === undefined) throw new TunnelError('REPLAY_IMPOSSIBLE')
  const [first = ''] = request.head.split('\r\n', 1)
  const fields = request.fields.map(({ name, value }) => `${name}: ${value}`)
  const guide = body === undefined ? [...GUIDE, KEPT_BODY] : GUIDE
  return [...guide, first.replace(/ HTTP\/1\.[01]$/, ''), ...fields, '', body ?? ''].join('\n')
}

/** Reads the edited text. The body is left out if it was not changed. Throws `OPTION_INVALID` if the text is not a request. */
export function editOf(text: string, body: string | undefined): Edit {
  const lines = text.replace(/^(?:#.*\r?\n)+/, '').split('\n')
  const blank = lines.findIndex(line => line.trim() === '')
  const head = (blank < 0 ? lines : lines.slice(0, blank)).map(line => line.replace(/\r$/, ''))
  if (head.join('').trim() === '') throw optionInvalid('The edited request is empty: nothing was sent.')
  const [first = '', ...rest] = head
  const [, method, path] = /^(\S+) (\S+)(?: HTTP\/1\.[01])?$/.exec(first.trim()) ?? []
  if (method === undefined || path === undefined)
    throw optionInvalid(`"${first.slice(0, 100)}" is not a method and a path, such as: POST /hooks`)
  const fields = rest.map(line => {
    const colon = line.indexOf(':')
    if (colon < 1) throw optionInvalid(`"${line.slice(0, 100)}" is not a field, such as: Name: value`)
    return { name: line.slice(0, colon), value: line.slice(colon + 1).trim() }
  })
  const written = blank < 0 ? '' : lines.slice(blank + 1).join('\n')
  // Editors add a line end to a file, which the body may not have had.
  const edited = body?.endsWith('\n') === true ? written : written.replace(/\n$/, '')
  const isKept = edited === (body ?? '')
  return { method, path, fields, ...(!isKept && { body: edited }) }
}
