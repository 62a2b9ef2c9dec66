// The place in the page, in the form of its address: #/requests/35/compare/34?filter=is:error.

export type Mode = '' | 'edit' | 'compare'

export interface Place {
  readonly id: string | undefined
  readonly mode: Mode
  /** The exchange to compare it with. */
  readonly other: string | undefined
  readonly filter: string
}

export function placeOf(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#/, '').split('?', 2)
  const [, id, mode = '', other] = /^\/requests\/(\d+)(?:\/(edit|compare)(?:\/(\d+))?)?$/.exec(path) ?? []
  // The pattern allows no other value.
  return { id, mode: mode as Mode, other, filter: new URLSearchParams(query).get('filter') ?? '' }
}

export function hashOf({ id, mode, other, filter }: Place): string {
  const path = ['#/requests', id, id && mode, id && mode === 'compare' && other].filter(Boolean).join('/')
  const query = encodeURIComponent(filter).replace(/%3A/g, ':').replace(/%2F/g, '/').replace(/%2C/g, ',')
  return query === '' ? path : `${path}?filter=${query}`
}
