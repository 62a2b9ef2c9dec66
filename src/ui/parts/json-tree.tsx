// JSON as a tree that can be folded.

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

/** Entries shown of one array or object, and levels that are open at first. */
const MAX_ENTRIES = 500
const OPEN_LEVELS = 2

export function JsonTree({ text }: { readonly text: string }) {
  return (
    <div class="json">
      <Node value={JSON.parse(text)} level={0} />
    </div>
  )
}

function Node({
  value,
  name,
  level,
}: {
  readonly value: Json
  readonly name?: string
  readonly level: number
}) {
  const label = name === undefined ? null : <span class="name">{name}: </span>
  if (typeof value !== 'object' || value === null)
    return (
      <div class="leaf">
        {label}
        <span class={value === null ? 'null' : typeof value}>{JSON.stringify(value)}</span>
      </div>
    )
  const isList = Array.isArray(value)
  const entries = Object.entries(value as { readonly [name: string]: Json })
  const summary = isList ? `[${entries.length}]` : `{${entries.length}}`
  if (entries.length === 0)
    return (
      <div class="leaf">
        {label}
        {isList ? '[]' : '{}'}
      </div>
    )
  return (
    <details open={level < OPEN_LEVELS}>
      <summary>
        {label}
        <span class="count">{summary}</span>
      </summary>
      {entries.slice(0, MAX_ENTRIES).map(([key, one]) => (
        <Node key={key} name={key} value={one} level={level + 1} />
      ))}
      {entries.length > MAX_ENTRIES && <div class="leaf count">… {entries.length - MAX_ENTRIES} more</div>}
    </details>
  )
}
