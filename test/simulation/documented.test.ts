// The seconds of the table in docs/cluster.md, on the simulated clock: no busy machine makes them longer.

import { expect, test } from 'bun:test'
import { Stage } from './stage.ts'

const THREE = { servers: 3, names: ['shop', 'blog', 'wiki'] } as const
const HOUR_MS = 3_600_000

test('a server is killed: 2 s later its clients are connected elsewhere, and every tunnel answers', () => {
  Stage.play(THREE, stage => {
    const { world } = stage
    world.killServer(stage.holderOf('shop'), false)
    expect(stage.settleMs()).toBeLessThan(2_000)
  })
})

test('Redis is back, empty: 3 s later everything is known again, and names can be claimed', () => {
  Stage.play(THREE, stage => {
    const { world } = stage
    world.killClient(stage.client('wiki'), false)
    world.pass(31_000)
    world.redis.kill()
    world.pass(20_000)
    expect(stage.answer(stage.holderOf('shop'), 'shop')).toBe('ok')
    world.startRedis(true)
    expect(stage.settleMs()).toBeLessThan(3_000)
    world.startClient(stage.client('wiki'))
    expect(stage.settleMs()).toBeLessThan(4_000)
  })
})

test('Redis is down: what each server holds and what it has asked for goes on, all else is 503 with a code', () => {
  Stage.play(THREE, stage => {
    const { world } = stage
    const holder = stage.holderOf('shop')
    const other = stage.other(holder)
    expect(stage.answer(other, 'shop')).toBe('ok')
    world.redis.kill()
    world.pass(60_000)
    expect(stage.answer(holder, 'shop')).toBe('ok')
    expect(stage.answer(other, 'shop')).toBe('ok')
    expect(stage.answer(other, 'nothing')).toBe('CLUSTER_UNREACHABLE')
    world.startRedis(false)
  })
})

test('a server is frozen: a request for its tunnel goes on elsewhere, and none waits for ever', () => {
  Stage.play(THREE, stage => {
    const { world } = stage
    const holder = stage.holderOf('shop')
    world.freeze(holder.process!)
    const ended = stage.ask(stage.other(holder), 'shop')
    // The client notices a dead carrier within 25 s.
    world.pass(27_000)
    expect(ended()).not.toBe('')
    expect(stage.answer(stage.other(holder), 'shop')).toBe('ok')
    holder.process?.thaw()
    world.pass(5_000)
    // It gives up what another server has by now.
    expect(holder.server?.getStats(true).subdomains).not.toContain('shop')
    expect(stage.answers()).toEqual(['ok'])
  })
})

test('a server is frozen: what another server has sent there ends after 42 s at the latest', () => {
  Stage.play(THREE, stage => {
    const { world } = stage
    const holder = stage.holderOf('shop')
    const other = stage.other(holder)
    const visitor = world.visitor(other)
    let ended = ''
    const over = ({ kind }: { readonly kind: string }): void => {
      ended = kind
    }
    world.ask(visitor, other, 'shop', over, { kind: 'length', length: 100, pauseMs: 2_000 })
    world.pass(1_000)
    world.freeze(holder.process!)
    world.pass(42_000)
    expect(ended).not.toBe('')
    world.leave(visitor)
    holder.process?.thaw()
    world.pass(5_000)
    expect(stage.answers()).toEqual(['ok'])
  })
})

test('a server is cut off from Redis for a minute: the name that another one has by then stays there', () => {
  Stage.play(THREE, stage => {
    const { world } = stage
    const holder = stage.holderOf('shop')
    const other = stage.other(holder)
    const { machine, process } = stage.client('shop')
    for (const far of [world.redis.machine, machine]) {
      world.network.block(holder.machine, far)
      world.network.block(far, holder.machine)
    }
    world.network.cut(process, holder.process)
    world.pass(60_000)
    expect(stage.answer(other, 'shop')).toBe('ok')
    world.network.heal()
    world.pass(6_000)
    expect(holder.server?.getStats(true).subdomains).not.toContain('shop')
    expect(stage.answers()).toEqual(['ok'])
  })
})

test('clocks of servers and clients jump by hours: nothing happens', () => {
  Stage.play(THREE, stage => {
    const { world } = stage
    const before = world.granted.length
    for (const [index, { machine }] of [...world.servers, ...world.clients].entries())
      machine.wallOffsetMs = (index % 2 === 0 ? 1 : -1) * (index + 1) * HOUR_MS
    for (let count = 0; count < 10; count++) {
      expect(stage.answers()).toEqual(['ok'])
      world.pass(5_000)
    }
    expect(world.granted.length).toBe(before)
  })
})
