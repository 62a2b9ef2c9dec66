// A world that a test directs step by step: everything is up, and the test says what goes wrong when.

import type { ClientPlace, ServerPlace, WorldOptions } from './world.ts'
import { World } from './world.ts'

/** A question is over by then, whatever happens. */
const OUTCOME_MS = 100_000
/** Answered at once. */
const SIMPLE = { kind: 'length', length: 100, pauseMs: 0 } as const

export class Stage {
  readonly world: World

  private constructor(world: World) {
    this.world = world
  }

  /** Runs `play` once all servers and clients are up. Throws what must not have happened. */
  static play(options: WorldOptions, play: (stage: Stage) => void): void {
    const world = new World(1, options)
    world.within(() => {
      for (const place of world.servers) world.startServer(place)
      world.pass(500)
      for (const place of world.clients) world.startClient(place)
      world.pass(5_000)
      play(new Stage(world))
      world.end()
    })
    if (world.broken.length > 0) throw new Error(world.broken.join('\n'))
  }

  server(name: string): ServerPlace {
    return found(this.world.servers.find(place => place.name === name))
  }

  client(name: string): ClientPlace {
    return found(this.world.clients.find(place => place.name === name))
  }

  /** The server that a tunnel is connected to. */
  holderOf(name: string): ServerPlace {
    return found(this.world.servers.find(({ server }) => server?.getStats(true).subdomains?.includes(name)))
  }

  /** One of the others. */
  other(place: ServerPlace): ServerPlace {
    return found(this.world.servers.find(one => one !== place && one.isUp))
  }

  /** Asks now. Returns what tells how it ended: `ok`, a code, `failed`; '' as long as it is under way. */
  ask(place: ServerPlace, name: string): () => string {
    const { world } = this
    const visitor = world.visitor(place)
    let ended = ''
    world.ask(
      visitor,
      place,
      name,
      outcome => {
        world.leave(visitor)
        ended = outcome.kind === 'refused' ? outcome.code : outcome.kind
      },
      SIMPLE,
    )
    return () => ended
  }

  /** Asks, and waits until it is over. */
  answer(place: ServerPlace, name: string): string {
    const ended = this.ask(place, name)
    const until = this.world.timeline.now + OUTCOME_MS
    while (ended() === '' && this.world.timeline.now < until) this.world.pass(10)
    return ended()
  }

  /** What every server that runs answers for the tunnel of every client that runs, without repetitions. */
  answers(): readonly string[] {
    const { servers, timeline } = this.world
    const clients = this.world.clients.filter(({ process }) => process !== undefined)
    const all = servers
      .filter(({ isUp }) => isUp)
      .flatMap(place => clients.map(({ name }) => this.ask(place, name)))
    const until = timeline.now + OUTCOME_MS
    while (all.some(ended => ended() === '') && timeline.now < until) this.world.pass(10)
    return [...new Set(all.map(ended => ended()))]
  }

  /** How long it takes until every server that runs answers for every tunnel. */
  settleMs(): number {
    const { world } = this
    const since = world.timeline.now
    while (this.answers().join() !== 'ok') {
      if (world.timeline.now - since > OUTCOME_MS) return Number.POSITIVE_INFINITY
      world.pass(20)
    }
    return world.timeline.now - since
  }
}

function found<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('there is none')
  return value
}
