// A field for code: the text area is transparent, and the same text with its colours is below it.

import { useEffect, useRef } from 'preact/hooks'
import { JsonColours } from '../parts/json-colours.tsx'

interface CodeFieldProps {
  readonly id: string
  readonly text: string
  readonly isJson: boolean
  /** The line with the fault, counted from 1. */
  readonly faultLine: number | undefined
  readonly describedBy: string
  readonly onInput: (text: string) => void
}

const LINE_PX = 20
const PADDING_PX = 16
const MIN_LINES = 6
const MAX_LINES = 40

export function CodeField({ id, text, isJson, faultLine, describedBy, onInput }: CodeFieldProps) {
  const field = useRef<HTMLTextAreaElement>(null)
  const under = useRef<HTMLPreElement>(null)
  const gutter = useRef<HTMLDivElement>(null)
  const lines = text.split('\n')
  const height = Math.min(MAX_LINES, Math.max(MIN_LINES, lines.length)) * LINE_PX + PADDING_PX
  useEffect(() => field.current?.focus({ preventScroll: true }), [])
  const scroll = () => {
    const { scrollTop = 0, scrollLeft = 0 } = field.current ?? {}
    if (under.current !== null) Object.assign(under.current, { scrollTop, scrollLeft })
    if (gutter.current !== null) gutter.current.scrollTop = scrollTop
  }
  return (
    <div class={`code ${faultLine === undefined ? '' : 'has-fault'}`} style={{ height: `${height}px` }}>
      <div class="gut" aria-hidden="true" ref={gutter}>
        {lines.map((_, index) =>
          index + 1 === faultLine ? <b key={index}>{index + 1}</b> : <span key={index}>{index + 1}</span>,
        )}
      </div>
      <div class="area">
        <pre class="paint" aria-hidden="true" ref={under}>
          {isJson ? <JsonColours text={text} /> : text}
          {'\n'}
        </pre>
        <textarea
          id={id}
          ref={field}
          spellcheck={false}
          wrap="off"
          aria-describedby={describedBy}
          aria-invalid={faultLine !== undefined}
          value={text}
          onInput={event => onInput(event.currentTarget.value)}
          onScroll={scroll}
        />
      </div>
    </div>
  )
}
