// The place in the page, in the form of its address: #/tunnels/docs-14?sort=-p95&q=anna.

import { VIEWS, type View } from '../../parts/admin/view-rows.ts'

export { VIEWS, type View }

export interface Place {
  readonly view: View
  /** The tunnel whose sheet is open. */
  readonly open: string | undefined
  readonly q: string
  readonly sort: string
  readonly only: string
  readonly range: string
  /** The tunnel whose traffic the graphs of Traffic show. */
  readonly tunnel: string
  readonly server: string
}

const USUAL = { q: '', sort: '', only: '', range: '', tunnel: '', server: '' } as const
const NAMES = ['q', 'sort', 'only', 'range', 'tunnel', 'server'] as const

/** Returns the place of a view without a sheet. */
export const at = (view: View): Place => ({ view, open: undefined, ...USUAL })

/** Parses an address. An invalid one means the overview. */
export function placeOf(hash: string): Place {
  const [path = '', text = ''] = hash.replace(/^#\//, '').split('?', 2)
  const [name, open] = path.split('/')
  const view = VIEWS.find(one => one === name)
  if (view === undefined) return at('overview')
  const query = new URLSearchParams(text)
  const given = Object.fromEntries(NAMES.map(one => [one, query.get(one) ?? '']))
  return { ...at(view), ...given, open: view === 'tunnels' && open ? decodeURIComponent(open) : undefined }
}

export function hashOf({ view, open, ...query }: Place): string {
  return `#/${view}${open === undefined ? '' : `/${encodeURIComponent(open)}`}${textOf(query)}`
}

/** Returns the query; `''` if everything has its default. */
export function textOf(query: Readonly<Record<string, string>>): string {
  const set = Object.entries(query).filter(([, value]) => value !== '')
  return set.length === 0 ? '' : `?${new URLSearchParams(set)}`
}
