// JSON as a tree of its source text, so that it shows what was sent. Each line can be folded, reached with arrow
// keys, and copied.

import { useComputed, useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { isJsonFault, type JsonNode, parseJson } from '../../parts/inspect/json-text.ts'
import { Icon } from './icons.tsx'

/** The number of entries of one array or object shown at once. */
const AT_ONCE = 500
/** The number of lines up to which levels are open at first. */
const OPEN_LINES = 60

interface Line {
  readonly path: string
  readonly level: number
  readonly name: string | undefined
  readonly node: JsonNode
  readonly isOpen: boolean
  /** The number of hidden entries. A click shows the next ones. */
  readonly left?: number
  /** Whether the text ended before this level did. */
  readonly isEnd?: boolean
}

interface JsonTreeProps {
  readonly root: JsonNode
  readonly label: string
  /** The text to search: matching lines are shown with their paths. */
  readonly search?: string
  readonly onCopy: (text: string, what: string) => void
}

/** Returns the root of a text, complete or truncated. `undefined` if it is not JSON. */
export function rootOf(text: string, isCut: boolean): JsonNode | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined
  const root = parseJson(text, isCut)
  return isJsonFault(root) ? undefined : root
}

export function JsonTree({ root, label, search = '', onCopy }: JsonTreeProps) {
  const toggled = useSignal<ReadonlySet<string>>(new Set())
  /** The number of shown entries by path. */
  const more = useSignal<ReadonlyMap<string, number>>(new Map())
  const focused = useSignal('$')
  const depth = useComputed(() => openDepth(root))
  const box = useRef<HTMLDivElement>(null)
  const shownOf = (path: string) => more.value.get(path) ?? AT_ONCE
  const lines =
    search === ''
      ? linesOf(root, depth.value, toggled.value, shownOf)
      : found(root, search.toLowerCase(), shownOf(''))
  const flip = (path: string) => {
    const next = new Set(toggled.value)
    if (!next.delete(path)) next.add(path)
    toggled.value = next
  }
  const show = (path: string) => {
    more.value = new Map(more.value).set(path, shownOf(path) + AT_ONCE)
  }
  const focus = (line: Line | undefined) => {
    if (line === undefined) return
    focused.value = idOf(line)
    // The element is in the document after the next drawing.
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus())
  }
  const press = (event: KeyboardEvent) => {
    const at = Math.max(
      0,
      lines.findIndex(line => idOf(line) === focused.value),
    )
    const line = lines[at]!
    const canFold = line.node.entries.length > 0 && line.left === undefined
    const parent = () => lines.slice(0, at).findLast(({ level }) => level < line.level)
    const keys: Readonly<Record<string, () => void>> = {
      ArrowDown: () => focus(lines[at + 1]),
      ArrowUp: () => focus(lines[at - 1]),
      Home: () => focus(lines[0]),
      End: () => focus(lines.at(-1)),
      ArrowRight: () => (canFold && !line.isOpen ? flip(line.path) : focus(lines[at + 1])),
      ArrowLeft: () => (canFold && line.isOpen ? flip(line.path) : focus(parent())),
      Enter: () => act(line),
      c: () => onCopy(sourceOf(line.node), `Copied ${line.path}`),
      C: () => onCopy(line.path, 'Path copied'),
    }
    const key = event.ctrlKey || event.metaKey ? undefined : keys[event.key]
    if (key === undefined) return
    event.preventDefault()
    event.stopPropagation()
    key()
  }
  const act = (line: Line) => {
    focused.value = idOf(line)
    if (line.left !== undefined) show(line.path)
    else if (line.node.entries.length > 0) flip(line.path)
  }
  const hasFocused = lines.some(line => idOf(line) === focused.value)
  if (lines.length === 0) return <p class="none">Nothing of it has this text.</p>
  return (
    <div class="tree" role="tree" aria-label={label} ref={box} onKeyDown={press}>
      {lines.map((line, index) => (
        <TreeLine
          key={idOf(line)}
          line={line}
          isFocusable={hasFocused ? idOf(line) === focused.value : index === 0}
          onClick={() => act(line)}
          onFocus={() => (focused.value = idOf(line))}
          onCopy={onCopy}
        />
      ))}
    </div>
  )
}

const idOf = ({ path, left, isEnd }: Line) =>
  `${path}${left === undefined ? '' : ' more'}${isEnd === true ? ' end' : ''}`

function TreeLine({
  line,
  isFocusable,
  onClick,
  onFocus,
  onCopy,
}: {
  readonly line: Line
  readonly isFocusable: boolean
  readonly onClick: () => void
  readonly onFocus: () => void
  readonly onCopy: JsonTreeProps['onCopy']
}) {
  const { node, name, level, isOpen, path, left, isEnd } = line
  const indent = (element: HTMLElement | null) => element?.style.setProperty('--d', `${level}`)
  const canFold = node.entries.length > 0 && left === undefined
  const item = {
    role: 'treeitem' as const,
    'aria-level': level + 1,
    tabIndex: isFocusable ? 0 : -1,
    ref: indent,
    onClick,
    onFocus,
  }
  if (isEnd === true)
    return (
      <div {...item}>
        <span class="tw" />
        <span class="prev">… the rest was not kept</span>
      </div>
    )
  if (left !== undefined)
    return (
      <div {...item} class="next">
        <span class="tw" />
        <span class="prev">
          … show the next {Math.min(left, AT_ONCE).toLocaleString('en')} of {left.toLocaleString('en')}
        </span>
      </div>
    )
  return (
    <div {...item} {...(canFold && { 'aria-expanded': isOpen })} title={path}>
      <span class="tw">{canFold && <Icon name="right" />}</span>
      {name !== undefined && <span class="k">{visible(name)}: </span>}
      <Value node={node} isOpen={isOpen} />
      <button
        type="button"
        class="cp"
        tabIndex={-1}
        aria-label={`Copy ${path}`}
        title={`Value of ${path}; with Shift: the path`}
        onClick={event => {
          event.stopPropagation()
          if (event.shiftKey) onCopy(path, 'Path copied')
          else onCopy(sourceOf(node), `Copied ${path}`)
        }}
      >
        Copy
      </button>
    </div>
  )
}

function Value({ node, isOpen }: { readonly node: JsonNode; readonly isOpen: boolean }) {
  const isNest = node.kind === 'object' || node.kind === 'array'
  if (isNest && isOpen && node.entries.length > 0) {
    const [first, last] = node.kind === 'object' ? '{}' : '[]'
    return (
      <span class="pun">
        {first}
        {node.entries.length.toLocaleString('en')}
        {last}
      </span>
    )
  }
  if (isNest) return <span class="prev">{preview(node)}</span>
  return (
    <>
      <span class={`v ${node.kind}`}>{visible(node.raw)}</span>
      {node.isCut && <span class="raw-note">cut</span>}
      {isInexact(node) && <span class="raw-note">as sent</span>}
    </>
  )
}

/** Whether a double cannot hold the number, so that JavaScript would show another one. */
function isInexact({ kind, raw }: JsonNode): boolean {
  const digits = (text: string) => text.replace(/e[-+]?\d+$|[-.]/gi, '').replace(/^0+|0+$/g, '')
  return kind === 'number' && digits(raw) !== digits(String(Number(raw)))
}

/** Shows characters that reverse text as escapes. */
function visible(text: string): string {
  return text.replace(
    /[\u202a-\u202e\u2066-\u2069\u200e\u200f]/g,
    one => `\\u${one.charCodeAt(0).toString(16)}`,
  )
}

function preview({ kind, entries, isCut }: JsonNode): string {
  if (entries.length === 0) return kind === 'object' ? '{}' : '[]'
  const short = ({ kind: inner, entries: within, raw }: JsonNode) => {
    if (inner === 'object') return '{…}'
    return inner === 'array' ? `[${within.length}]` : raw.length > 60 ? `${raw.slice(0, 60)}…` : raw
  }
  const some = entries.slice(0, 4).map(({ name, value }) => {
    return name === undefined ? short(value) : `${plain(name)}: ${short(value)}`
  })
  const text = `${some.join(', ')}${entries.length > 4 || isCut ? ', …' : ''}`
  return visible(kind === 'object' ? `{ ${text} }` : `[ ${text} ]`)
}

/** Returns a name, without quotes if it needs none. */
function plain(name: string): string {
  return /^"[\w$-]+"$/.test(name) ? name.slice(1, -1) : name
}

/** Returns the original text of a value, without blanks. */
function sourceOf({ kind, raw, entries }: JsonNode): string {
  if (kind !== 'object' && kind !== 'array') return kind === 'string' ? textOf(raw) : raw
  return nested({ kind, raw, entries, isCut: false })
}

function nested({ kind, raw, entries }: JsonNode): string {
  if (kind !== 'object' && kind !== 'array') return raw
  const all = entries.map(({ name, value }) => (name === undefined ? '' : `${name}:`) + nested(value))
  return kind === 'object' ? `{${all.join(',')}}` : `[${all.join(',')}]`
}

/** Returns a copied string without quotes. */
function textOf(raw: string): string {
  try {
    return String(JSON.parse(raw))
  } catch {
    return raw
  }
}

/** Returns the level down to which everything is open: until the lines fill a screen. */
function openDepth(root: JsonNode): number {
  let level: readonly JsonNode[] = [root]
  let lines = 1
  for (let depth = 0; depth < 64; depth++) {
    const next = level.flatMap(({ entries }) => entries.slice(0, AT_ONCE).map(({ value }) => value))
    lines += next.length
    // The first level is always open.
    if (next.length === 0 || (lines > OPEN_LINES && depth > 0)) return depth
    level = next
  }
  return 64
}

function linesOf(
  root: JsonNode,
  depth: number,
  toggled: ReadonlySet<string>,
  shownOf: (path: string) => number,
): Line[] {
  const lines: Line[] = []
  const add = (node: JsonNode, name: string | undefined, level: number, path: string): void => {
    const isOpen = level < depth !== toggled.has(path)
    lines.push({ path, level, name, node, isOpen })
    // Deeper levels are opened one by one.
    if (!isOpen || level > 500) return
    const shown = shownOf(path)
    for (const [index, entry] of node.entries.slice(0, shown).entries())
      add(entry.value, nameOf(entry.name, index), level + 1, pathOf(path, entry.name, index))
    const left = node.entries.length - shown
    if (left > 0) lines.push({ path, level: level + 1, name: undefined, node, isOpen, left })
    // The innermost open level marks the truncation.
    else if (node.isCut && lines.at(-1)?.isEnd !== true)
      lines.push({ path, level: level + 1, name: undefined, node, isOpen, isEnd: true })
  }
  add(root, undefined, 0, '$')
  return lines
}

function nameOf(name: string | undefined, index: number): string {
  return name === undefined ? `${index}` : plain(name)
}

function pathOf(path: string, name: string | undefined, index: number): string {
  if (name === undefined) return `${path}[${index}]`
  return /^"[A-Za-z_$][\w$]*"$/.test(name) ? `${path}.${name.slice(1, -1)}` : `${path}[${name}]`
}

/** Returns the lines with the text, each with its whole path as its name. */
function found(root: JsonNode, search: string, shown: number): Line[] {
  const lines: Line[] = []
  let count = 0
  const waiting: { readonly node: JsonNode; readonly path: string; next: number }[] = [
    { node: root, path: '$', next: 0 },
  ]
  for (let top = waiting.at(-1); top !== undefined; top = waiting.at(-1)) {
    const index = top.next++
    const entry = top.node.entries[index]
    if (entry === undefined) {
      waiting.pop()
      continue
    }
    const path = pathOf(top.path, entry.name, index)
    const text = `${entry.name ?? ''} ${entry.value.raw}`.toLowerCase()
    if (text.includes(search) && count++ < shown)
      lines.push({ path, level: 0, name: path.replace(/^\$\.?/, ''), node: entry.value, isOpen: false })
    if (entry.value.entries.length > 0) waiting.push({ node: entry.value, path, next: 0 })
  }
  if (count > shown)
    lines.push({ path: '', level: 0, name: undefined, node: root, isOpen: false, left: count - shown })
  return lines
}
