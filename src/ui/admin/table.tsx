// A table with a fixed head, columns that sort by a click on their names, and rows that are cards on a phone.

import type { ComponentChildren } from 'preact'
import { Icon } from '../parts/icons.tsx'
import { Menu, type MenuItem } from '../parts/menu.tsx'
import { change, isAdding, place, showMore } from './state.ts'

export interface Column<Row> {
  /** The key by which the server sorts. Left out if it does not. */
  readonly sort?: string
  readonly head: string
  /** `num`: right-aligned; `mid`, `lo`: hidden in narrower windows. */
  readonly class?: string
  readonly cell: (row: Row) => ComponentChildren
}

interface RowsProps<Row> {
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row, at: number) => string
  readonly isOpen?: (row: Row) => boolean
  /** The column by which rows are sorted, with `-` for descending. Left out if the table does not sort. */
  readonly sorted?: string
  readonly actions?: (row: Row) => ComponentChildren
}

/** The table itself, without a filter and further rows. */
export function Rows<Row>({ columns, rows, keyOf, isOpen, sorted, actions }: RowsProps<Row>) {
  return (
    <table class="data">
      <thead>
        <tr>
          {columns.map(column => (
            <Head key={column.head} column={column} sorted={sorted} />
          ))}
          {actions !== undefined && (
            <th scope="col">
              <span class="sr">Actions</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, at) => (
          <tr key={keyOf(row, at)} aria-selected={isOpen?.(row)}>
            {columns.map(({ head, class: name, cell }) => (
              <td key={head} class={name} data-head={head}>
                {cell(row)}
              </td>
            ))}
            {actions !== undefined && <td class="act">{actions(row)}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

interface TableProps<Row> extends Omit<RowsProps<Row>, 'rows' | 'sorted'> {
  readonly label: string
  /** The rows. `undefined` before they were read. */
  readonly rows: readonly Row[] | undefined
  readonly matching?: number
  /** The order if the address has none. */
  readonly usual?: string
  /** The text in place of rows. */
  readonly empty: string
}

export function Table<Row>({ label, rows, matching = 0, usual = '', empty, ...more }: TableProps<Row>) {
  if (rows === undefined) return <Skeleton />
  return (
    <section class="tall" tabIndex={0} aria-label={label}>
      <Rows {...more} rows={rows} sorted={place.value.sort || usual} />
      {rows.length === 0 && <p class="empty">{empty}</p>}
      {rows.length < matching && (
        <p class="more">
          {rows.length} of {matching}
          <button type="button" class="btn" onClick={showMore}>
            Show more
          </button>
        </p>
      )}
    </section>
  )
}

export const RowMenu = ({
  name,
  items,
}: {
  readonly name: string
  readonly items: readonly (MenuItem | undefined)[]
}) => (
  <Menu label={`Actions for ${name}`} at="right" items={items}>
    <Icon name="more" />
  </Menu>
)

interface HeadProps<Row> {
  readonly column: Column<Row>
  readonly sorted: string | undefined
}

function Head<Row>({ column: { sort, head, class: name = '' }, sorted }: HeadProps<Row>) {
  if (sort === undefined || sorted === undefined)
    return (
      <th scope="col" class={name}>
        {head}
      </th>
    )
  const isOwn = sorted.replace(/^-/, '') === sort
  const isDown = sorted.startsWith('-')
  // Numbers begin with the largest, names with A.
  const next = isOwn ? (isDown ? sort : `-${sort}`) : name.includes('num') ? `-${sort}` : sort
  return (
    <th scope="col" class={name} aria-sort={isOwn ? (isDown ? 'descending' : 'ascending') : 'none'}>
      <button type="button" onClick={() => change({ sort: next })}>
        {head}
        <span class="arrow" aria-hidden="true">
          {isOwn && (isDown ? '↓' : '↑')}
        </span>
      </button>
    </th>
  )
}

export function Skeleton({ rows = 8 }: { readonly rows?: number }) {
  return (
    <div class="skeleton loading" role="status">
      <span class="sr">Loading</span>
      {Array.from({ length: rows }, (_, at) => (
        <div key={at} class="shimmer" />
      ))}
    </div>
  )
}

/** The line above a table: its name, its filter, and further controls. */
export function Bar({
  title,
  placeholder,
  children,
}: {
  readonly title: string
  /** The text in the empty filter. Left out if there is no filter. */
  readonly placeholder?: string
  readonly children?: ComponentChildren
}) {
  return (
    <div class="bar">
      <h1>{title}</h1>
      {placeholder !== undefined && (
        <input
          id="filter"
          class="input"
          type="search"
          aria-label={`Filter ${title.toLowerCase()}`}
          placeholder={placeholder}
          value={place.value.q}
          onInput={event => change({ q: event.currentTarget.value })}
        />
      )}
      {children}
    </div>
  )
}

/** Whether a row matches the filter, for lists that the page itself filters. */
export const fits = (...texts: readonly string[]): boolean =>
  texts.some(text => text.toLowerCase().includes(place.value.q.toLowerCase()))

/** A button that opens and closes the form for adding in a view. */
export function AddButton({ text }: { readonly text: string }) {
  return (
    <button
      type="button"
      class="btn main end"
      aria-expanded={isAdding.value}
      onClick={() => (isAdding.value = !isAdding.value)}
    >
      {text}
    </button>
  )
}
