// What lies over the page: the editor of a request, and the keys.

import { useEffect, useRef } from 'preact/hooks'
import { MASK } from '../../client/inspect/exchange.ts'
import { replay } from './actions.ts'
import { api } from './api.ts'
import { KEYS } from './keys.ts'
import { detail, dialog } from './state.ts'

export function Dialogs() {
  if (dialog.value === 'help') return <Help />
  return dialog.value === 'edit' ? <Editor /> : null
}

function Frame({ title, children }: { readonly title: string; readonly children: preact.ComponentChildren }) {
  const box = useRef<HTMLDialogElement>(null)
  useEffect(() => box.current?.showModal(), [])
  return (
    <dialog ref={box} aria-label={title} onClose={() => (dialog.value = undefined)}>
      <header>
        <h2>{title}</h2>
        <button type="button" onClick={() => box.current?.close()}>
          Close
        </button>
      </header>
      {children}
    </dialog>
  )
}

function Help() {
  return (
    <Frame title="Keys">
      <table class="fields">
        <tbody>
          {KEYS.map(({ keys, meaning }) => (
            <tr key={meaning}>
              <th scope="row">
                {keys.map(key => (
                  <kbd key={key}>{key.replace('Arrow', '')}</kbd>
                ))}
              </th>
              <td>{meaning}</td>
            </tr>
          ))}
          <tr>
            <th scope="row">
              <kbd>Esc</kbd>
            </th>
            <td>back</td>
          </tr>
        </tbody>
      </table>
    </Frame>
  )
}

function Editor() {
  const exchange = detail.value
  const body = useRef<HTMLTextAreaElement>(null)
  const lineEnd = useRef('\n')
  // A body that the user did not touch is sent byte for byte, and not as the field has made it.
  const isEdited = useRef(false)
  useEffect(() => {
    if (exchange === undefined || exchange.requestBody.keptBytes === 0) return
    void api.body(exchange.id, 'request').then(({ bytes }) => {
      const field = body.current
      if (field === null) return
      try {
        const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
        if (text.includes('\r\n')) lineEnd.current = '\r\n'
        // What was typed meanwhile stays.
        if (!isEdited.current) field.value = text
      } catch {
        field.disabled = true
        field.placeholder = `${bytes.length} bytes that are no text: they are sent as they are.`
      }
    })
  }, [exchange])
  if (exchange?.request === undefined) return null
  const fields = exchange.request.fields.map(({ name, value }) => `${name}: ${value}`).join('\n')
  const send = (event: SubmitEvent) => {
    event.preventDefault()
    // The form of this dialog.
    const given = new FormData(event.currentTarget as HTMLFormElement)
    const text = (name: string) => {
      const value = given.get(name)
      return typeof value === 'string' ? value : ''
    }
    const edited = text('body').replace(/\r?\n/g, lineEnd.current)
    dialog.value = undefined
    void replay(
      {
        method: text('method'),
        path: text('path'),
        fields: text('fields')
          .split(/\r?\n/)
          .filter(line => line.trim() !== '')
          .map(line => {
            const colon = line.indexOf(':')
            return {
              name: line.slice(0, colon < 0 ? line.length : colon).trim(),
              value: colon < 0 ? '' : line.slice(colon + 1).trim(),
            }
          }),
        ...(isEdited.current && { body: edited }),
      },
      Number(text('times')) || 1,
      exchange.verified && given.has('resign'),
    )
  }
  return (
    <Frame title="Edit and replay">
      <form onSubmit={send}>
        <div class="pair">
          <label>
            Method
            <input name="method" defaultValue={exchange.method} required size={8} />
          </label>
          <label class="wide">
            Path
            <input name="path" defaultValue={exchange.path} required />
          </label>
          <label>
            Times
            <input name="times" type="number" min={1} max={100} defaultValue="1" />
          </label>
        </div>
        <label>
          Fields
          <textarea name="fields" rows={8} spellcheck={false} defaultValue={fields} />
        </label>
        <p class="quiet">
          {MASK} stands for the secret that was captured. Content-Length follows from the body.
        </p>
        <label>
          Body
          <textarea
            name="body"
            ref={body}
            rows={10}
            spellcheck={false}
            onInput={() => (isEdited.current = true)}
          />
        </label>
        {exchange.verified !== undefined && (
          <label class="check">
            <input name="resign" type="checkbox" defaultChecked={exchange.verified.isValid} /> fresh signature
          </label>
        )}
        <button type="submit" class="main">
          Send
        </button>
      </form>
    </Frame>
  )
}
