// Parts of forms.

/** The choices of a duration in seconds; `''`: until an operator ends it. */
const TIMES = [
  ['', 'without end'],
  ['3600', 'for an hour'],
  ['86400', 'for a day'],
  ['604800', 'for a week'],
  ['7776000', 'for 90 days'],
] as const

export function Times() {
  return (
    <select class="input" name="seconds" aria-label="For how long">
      {TIMES.map(([seconds, text]) => (
        <option key={seconds} value={seconds}>
          {text}
        </option>
      ))}
    </select>
  )
}

/** The text in a field of a form. */
export function typed(form: HTMLFormElement, name: string): string {
  const given = new FormData(form).get(name)
  return typeof given === 'string' ? given : ''
}
