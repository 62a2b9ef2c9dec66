// Places that have an address each and can be cut off from each other: network namespaces on one bridge. Needs root and `ip`; nothing
// outside of them changes. Without these rights every place is an address of the loopback, and nothing can be cut.

import { spawnSync } from 'node:child_process'

/** Where frames go that are for no one: a cut says nothing to either side, as a cable that was pulled. */
const NO_ONE = '02:00:00:00:00:01'

export class Places {
  readonly #names: readonly string[]
  readonly #hub: string | undefined
  readonly #cut = new Set<string>()

  /** Why nothing can be cut; `undefined`: it can. */
  readonly missing: string | undefined

  private constructor(names: readonly string[], hub: string | undefined, missing: string | undefined) {
    this.#names = names
    this.#hub = hub
    this.missing = missing
  }

  /** On failure, and at the end of the program, everything is taken away again. */
  static open(names: readonly string[]): Places {
    const missing = whyNot()
    if (missing !== undefined) return new Places(names, undefined, missing)
    const places = new Places(names, `lt-chaos-${process.pid}`, undefined)
    process.on('exit', () => places.close())
    places.#build()
    return places
  }

  #build(): void {
    const hub = this.#hub!
    ip('netns', 'add', hub)
    ip('-n', hub, 'link', 'add', 'bridge', 'type', 'bridge')
    ip('-n', hub, 'link', 'set', 'bridge', 'up')
    for (const [at, name] of this.#names.entries()) {
      const space = this.#space(name)
      ip('netns', 'add', space)
      ip('-n', space, 'link', 'set', 'lo', 'up')
      ip(...`link add port${at} netns ${hub} type veth peer name lan netns ${space}`.split(' '))
      ip(...`-n ${hub} link set port${at} master bridge up`.split(' '))
      ip(...`-n ${space} address add ${this.address(name)}/24 dev lan`.split(' '))
      ip(...`-n ${space} link set lan up`.split(' '))
    }
  }

  address(name: string): string {
    const at = this.#names.indexOf(name) + 1
    // Another run beside this one has other addresses of the loopback.
    return this.#hub === undefined ? `127.78.${process.pid % 250}.${at}` : `10.78.0.${at}`
  }

  /** What stands before a command that runs there. */
  inside(name: string): readonly string[] {
    return this.#hub === undefined ? [] : ['ip', 'netns', 'exec', this.#space(name)]
  }

  /** Nothing passes between the two any more. */
  cut(one: string, other: string): void {
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      if (this.#cut.has(`${from} ${to}`)) throw new Error(`${from} and ${to} are cut off already`)
      this.#cut.add(`${from} ${to}`)
      this.#neighbour(from, 'replace', to, 'lladdr', NO_ONE, 'nud', 'permanent')
    }
  }

  mend(one: string, other: string): void {
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const)
      if (this.#cut.delete(`${from} ${to}`)) this.#neighbour(from, 'del', to)
  }

  #neighbour(from: string, change: string, to: string, ...more: readonly string[]): void {
    ip('-n', this.#space(from), 'neigh', change, this.address(to), ...more, 'dev', 'lan')
  }

  /** Processes that still run there. */
  processes(): readonly number[] {
    if (this.#hub === undefined) return []
    return this.#names.flatMap(name => {
      const { stdout } = spawnSync('ip', ['netns', 'pids', this.#space(name)])
      return stdout.toString().split('\n').filter(Boolean).map(Number)
    })
  }

  #isClosed = false
  close(): void {
    if (this.#hub === undefined || this.#isClosed) return
    this.#isClosed = true
    for (const name of this.#names) spawnSync('ip', ['netns', 'del', this.#space(name)])
    spawnSync('ip', ['netns', 'del', this.#hub])
  }

  #space(name: string): string {
    return `lt-chaos-${process.pid}-${name}`
  }
}

function whyNot(): string | undefined {
  if (process.getuid?.() !== 0) return 'that needs root'
  if (Bun.which('ip') === null) return 'ip is not installed: apt-get install iproute2'
  const space = `lt-chaos-${process.pid}-try`
  const made = spawnSync('ip', ['netns', 'add', space])
  if (made.status !== 0) return `no network namespaces here: ${made.stderr.toString().trim()}`
  const { status, stderr } = spawnSync('ip', ['-n', space, 'link', 'add', 'bridge', 'type', 'bridge'])
  spawnSync('ip', ['netns', 'del', space])
  return status === 0 ? undefined : `no bridge here: ${stderr.toString().trim()}`
}

function ip(...words: readonly string[]): void {
  const { status, stderr, error } = spawnSync('ip', words)
  if (status !== 0) throw new Error(`ip ${words.join(' ')}: ${error?.message ?? stderr.toString().trim()}`)
}
