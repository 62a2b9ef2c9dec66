// The parts of a form, and pictures.

import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { bytes } from '../parts/format.ts'
import { Hex } from '../parts/hex.tsx'
import type { Part } from '../parts/multipart.ts'
import { isBinary, mimeOf, textOf } from './text.ts'

export const PICTURES = /^image\/(?:png|jpeg|gif|webp|avif|x-icon|bmp|svg\+xml)$/

/** Shows a picture. As a picture, an SVG document runs no scripts and loads nothing. */
export function Picture({ bytes: all, type }: { readonly bytes: Uint8Array; readonly type: string }) {
  const url = useSignal('')
  useEffect(() => {
    url.value = URL.createObjectURL(new Blob([all.slice()], { type }))
    return () => URL.revokeObjectURL(url.value)
  }, [all, type, url])
  return url.value === '' ? null : <img class="picture" src={url.value} alt={`The body: ${type}`} />
}

export function Parts({ parts }: { readonly parts: readonly Part[] }) {
  return (
    <table class="kv">
      <tbody>
        {parts.map(({ name, file, type, bytes: content }, index) => (
          <tr key={index}>
            <th scope="row">{name}</th>
            <td>
              {file !== undefined && (
                <p class="quiet">
                  {file} ({bytes(content.length)}
                  {type === '' ? '' : `, ${type}`})
                </p>
              )}
              <Content bytes={content} type={type} isFile={file !== undefined} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** Shows a field; a file that is not a picture only when it is opened. */
function Content({
  bytes: all,
  type,
  isFile,
}: {
  readonly bytes: Uint8Array
  readonly type: string
  readonly isFile: boolean
}) {
  const isOpen = useSignal(false)
  const shown = () =>
    isBinary(all, type) ? (
      <Hex bytes={all} />
    ) : (
      <pre class="text" tabIndex={0}>
        {textOf(all, type)}
      </pre>
    )
  if (PICTURES.test(mimeOf(type))) return <Picture bytes={all} type={mimeOf(type)} />
  if (!isFile) return shown()
  return (
    <details onToggle={event => (isOpen.value = event.currentTarget.open)}>
      <summary>content</summary>
      {isOpen.value && shown()}
    </details>
  )
}
