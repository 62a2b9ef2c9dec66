// The directory and its servers as plain data: what each step has to lead to, written without the code of `directories/` and `holds.ts`.
// A unit of time is a tick; a server's lease lasts two of them, its URL and the early time of a new directory one.

export const LEASE_TICKS = 2
/** How much later a directory is that was started anew: above all epochs of before. */
export const LOSS_MS = 100_000

interface Entry {
  readonly epoch: number
  readonly proof: number
}

/** What a name is in the directory. Proofs are numbers; 0: none. */
interface Held extends Entry {
  readonly node: string
}

export interface State {
  readonly now: number
  readonly isBorn: boolean
  readonly isEarly: boolean
  readonly epoch: number
  /** Ticks that are left of each server's lease. */
  readonly leases: Readonly<Record<string, number>>
  readonly names: Readonly<Record<string, Held>>
  /** What each server believes that it holds, and the highest epoch that it has heard of. */
  readonly held: Readonly<Record<string, Readonly<Record<string, Entry>>>>
  readonly heard: Readonly<Record<string, number>>
  /** Servers that hear nothing of the directory, and it nothing of them. */
  readonly cut: Readonly<Record<string, boolean>>
  /** What the owner of each name was given last. */
  readonly secrets: Readonly<Record<string, number>>
  readonly lastProof: number
  /** Highest epoch that was ever granted of each name. */
  readonly granted: Readonly<Record<string, number>>
}

export type Action =
  | { readonly kind: 'beat' | 'cut'; readonly node: string }
  | { readonly kind: 'own' | 'strange' | 'lost' | 'release'; readonly node: string; readonly name: string }
  | { readonly kind: 'tick' | 'lose' }

/** What the directory answers: compared with the real ones, to the letter. */
export type Answer = string

export function begin(nodes: readonly string[], now: number): State {
  const each = <Value>(value: Value): Record<string, Value> =>
    Object.fromEntries(nodes.map(node => [node, value]))
  return {
    now,
    isBorn: false,
    isEarly: false,
    epoch: 0,
    leases: {},
    names: {},
    held: each({}),
    heard: each(0),
    cut: each(false),
    secrets: {},
    lastProof: 0,
    granted: {},
  }
}

export function actionsOf(nodes: readonly string[], names: readonly string[]): readonly Action[] {
  const ofNodes = nodes.flatMap(node => [{ kind: 'beat', node } as const, { kind: 'cut', node } as const])
  const ofNames = nodes.flatMap(node =>
    names.flatMap(name =>
      (['own', 'strange', 'lost', 'release'] as const).map(kind => ({ kind, node, name })),
    ),
  )
  return [...ofNodes, ...ofNames, { kind: 'tick' }, { kind: 'lose' }]
}

/** The name as the directory sees it; a server whose lease is over holds nothing. */
export function holderOf(state: State, name: string): Held | undefined {
  const held = state.names[name]
  return held !== undefined && (state.leases[held.node] ?? 0) > 0 ? held : undefined
}

/** `undefined`: it cannot happen just now. */
export function step(state: State, action: Action): readonly [State, Answer] | undefined {
  const outcome = stepOf(state, action)
  if (outcome === undefined) return undefined
  const [next, answer] = outcome
  // Each step is followed by a look at every name, which forgets what servers without a lease had.
  const names = Object.fromEntries(
    Object.entries(next.names).filter(([name]) => holderOf(next, name) !== undefined),
  )
  return [{ ...next, names }, answer]
}

function stepOf(state: State, action: Action): readonly [State, Answer] | undefined {
  switch (action.kind) {
    case 'tick': {
      const leases = mapped(state.leases, ticks => Math.max(0, ticks - 1))
      return [{ ...state, now: state.now + 1_000, leases, isEarly: false }, '']
    }
    case 'lose':
      return [
        {
          ...state,
          now: state.now + LOSS_MS,
          isBorn: false,
          isEarly: false,
          epoch: 0,
          leases: {},
          names: {},
        },
        '',
      ]
    case 'cut':
      return [{ ...state, cut: { ...state.cut, [action.node]: state.cut[action.node] !== true } }, '']
    case 'beat':
      return state.cut[action.node] === true ? undefined : beat(state, action.node)
    case 'release':
      return release(state, action.node, action.name)
    default:
      return state.cut[action.node] === true ? undefined : claim(state, action.kind, action.node, action.name)
  }
}

function born(state: State): State {
  if (state.isBorn) return state
  return { ...state, isBorn: true, isEarly: true, epoch: Math.max(state.epoch, state.now) }
}

/** With what follows for a server that the directory does not know: it says what it holds. */
function beat(before: State, node: string): readonly [State, Answer] {
  const isKnown = (before.leases[node] ?? 0) > 0
  let state = born({ ...before, leases: { ...before.leases, [node]: LEASE_TICKS } })
  const epoch = Math.max(state.epoch, state.heard[node] ?? 0)
  state = { ...state, epoch, heard: { ...state.heard, [node]: epoch } }
  if (isKnown) return [state, `known ${epoch}`]
  const lost: string[] = []
  for (const [name, own] of Object.entries(state.held[node] ?? {})) {
    const there = holderOf(state, name)
    if (there !== undefined && there.node !== node && there.epoch >= own.epoch) {
      lost.push(name)
      continue
    }
    state = { ...state, epoch: Math.max(state.epoch, own.epoch) }
    if (there?.node === node && there.epoch > own.epoch) continue
    state = { ...state, names: { ...state.names, [name]: { ...own, node } } }
    if (there?.node !== node) state = told(state, name, node, own.epoch)
  }
  return [without(state, node, lost), `new ${epoch} lost ${lost.sort().join()}`]
}

function claim(
  before: State,
  kind: 'own' | 'strange' | 'lost',
  node: string,
  name: string,
): readonly [State, Answer] {
  const shown = kind === 'strange' ? 0 : (before.secrets[name] ?? 0)
  const next = before.lastProof + 1
  let state: State = { ...before, lastProof: next }
  const there = holderOf(state, name)
  const isProved = there !== undefined && shown !== 0 && there.proof === shown
  if (there !== undefined && !isProved) return [state, 'taken']
  if (there === undefined) state = born(state)
  if (there === undefined && state.isEarly) return [state, 'early']
  const proof = isProved ? shown : next
  const epoch = state.epoch + 1
  state = { ...state, epoch, names: { ...state.names, [name]: { node, epoch, proof } } }
  state = told(state, name, node, epoch)
  state = { ...state, granted: { ...state.granted, [name]: Math.max(state.granted[name] ?? 0, epoch) } }
  const answer = `granted ${epoch} ${isProved}`
  if (kind === 'lost') return [state, answer]
  if (kind === 'own') state = { ...state, secrets: { ...state.secrets, [name]: proof } }
  const own = { ...state.held[node], [name]: { epoch, proof } }
  const heard = { ...state.heard, [node]: Math.max(state.heard[node] ?? 0, epoch) }
  return [{ ...state, heard, held: { ...state.held, [node]: own } }, answer]
}

function release(before: State, node: string, name: string): readonly [State, Answer] | undefined {
  const own = before.held[node]?.[name]
  if (own === undefined || before.cut[node] === true) return undefined
  const state = without(before, node, [name])
  const there = state.names[name]
  if (there?.node !== node || there.epoch !== own.epoch) return [state, 'not its own']
  return [{ ...state, names: omitted(state.names, name) }, 'free']
}

/** Servers that are not cut off hear of it: the one that holds the name by a lower epoch gives it up. */
function told(before: State, name: string, node: string, epoch: number): State {
  let state = before
  for (const other of Object.keys(state.held)) {
    if (state.cut[other] === true) continue
    const heard = { ...state.heard, [other]: Math.max(state.heard[other] ?? 0, epoch) }
    state = { ...state, heard }
    const own = state.held[other]?.[name]
    if (other !== node && own !== undefined && own.epoch <= epoch) state = without(state, other, [name])
  }
  return state
}

function without(state: State, node: string, names: readonly string[]): State {
  let own = state.held[node] ?? {}
  for (const name of names) own = omitted(own, name)
  return { ...state, held: { ...state.held, [node]: own } }
}

/** All are connected, and each has said what it holds. */
export function settled(before: State): State {
  let state: State = { ...before, cut: mapped(before.cut, () => false), leases: {} }
  for (const node of Object.keys(state.held)) state = beat(state, node)[0]
  return state
}

/** The same text for states that differ in nothing that any step could show: epochs, proofs and times by their order alone. */
export function keyOf(state: State): string {
  const epochs = [state.epoch, ...Object.values(state.heard), ...Object.values(state.granted)]
  const proofs = [...Object.values(state.secrets)]
  const entries = [
    ...Object.values(state.names),
    ...Object.values(state.held).flatMap(own => Object.values(own)),
  ]
  for (const { epoch, proof } of entries) {
    epochs.push(epoch)
    proofs.push(proof)
  }
  // Where the directory is not born, its epoch comes from the time, which is above all.
  const ranks = ranksOf(epochs)
  const places = ranksOf(proofs)
  const short = ({ epoch, proof }: Entry): readonly unknown[] => [ranks.get(epoch), places.get(proof)]
  return JSON.stringify([
    state.isBorn,
    state.isEarly,
    ranks.get(state.epoch),
    sorted(state.leases, ticks => ticks),
    sorted(state.names, one => [one.node, ...short(one)]),
    sorted(state.held, own => sorted(own, short)),
    sorted(state.heard, epoch => ranks.get(epoch)),
    sorted(state.cut, isCut => isCut),
    sorted(state.secrets, proof => places.get(proof)),
    sorted(state.granted, epoch => ranks.get(epoch)),
  ])
}

function ranksOf(numbers: readonly number[]): ReadonlyMap<number, number> {
  return new Map([...new Set(numbers)].sort((a, b) => a - b).map((number, rank) => [number, rank]))
}

function sorted<Value>(record: Readonly<Record<string, Value>>, of: (value: Value) => unknown): unknown {
  return Object.entries(record)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => [name, of(value)])
}

function mapped<Value>(
  record: Readonly<Record<string, Value>>,
  of: (value: Value) => Value,
): Record<string, Value> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, of(value)]))
}

function omitted<Value>(record: Readonly<Record<string, Value>>, name: string): Record<string, Value> {
  return Object.fromEntries(Object.entries(record).filter(([one]) => one !== name))
}
