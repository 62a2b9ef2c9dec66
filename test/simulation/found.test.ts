// What simulations have found, each in its fewest steps.

import { expect, test } from 'bun:test'
import { Stage } from './stage.ts'

const TWO = { servers: 2, names: ['shop', 'blog'] } as const

test('servers know each other again after Redis lost its data and one of them was started anew', () => {
  Stage.play({ servers: 3, names: ['shop', 'blog'] }, stage => {
    const { world } = stage
    world.redis.kill()
    world.pass(1_000)
    world.startRedis(true)
    world.pass(5_000)
    const place = stage.server('s3')
    world.killServer(place, false)
    world.startServer(place)
    world.pass(10_000)
    expect(stage.answers()).toEqual(['ok'])
  })
})

test('the same where the one that is started anew comes first', () => {
  Stage.play({ servers: 3, names: ['shop', 'blog'] }, stage => {
    const { world } = stage
    const [old, late] = [stage.server('s1'), stage.server('s3')]
    world.killServer(late, false)
    world.pass(2_000)
    world.network.block(old.machine, world.redis.machine)
    world.redis.kill()
    world.startRedis(true)
    world.startServer(late)
    world.pass(5_000)
    world.network.heal()
    world.pass(10_000)
    expect(stage.answers()).toEqual(['ok'])
  })
})

test('a name whose claim was granted, and whose answer was lost, is free once the server hears of the directory again', () => {
  Stage.play(TWO, stage => {
    const { world } = stage
    const place = stage.client('shop')
    world.killClient(place, false)
    // Its name is free when the lease is over; then it starts without its secret, and Redis is slower than servers wait.
    world.pass(31_000)
    world.redis.costMs = 2_100
    world.startClient(place)
    world.pass(5_000)
    world.killClient(place, false)
    world.redis.costMs = 0.02
    world.pass(10_000)
    world.startClient(place)
    world.pass(3_000)
    expect(stage.answers()).toEqual(['ok'])
  })
})

test('a server that holds a name grants it to no other client while the directory is away', () => {
  Stage.play({ ...TWO, whenUnreachable: 'grant' }, stage => {
    const { world } = stage
    const place = stage.client('shop')
    world.redis.kill()
    world.pass(3_000)
    // Another process of the client, which does not have its secret.
    world.killClient(place, false)
    world.startClient(place)
    world.pass(5_000)
    world.startRedis(false)
    world.pass(31_000)
    expect(stage.answers()).toEqual(['ok'])
  })
})

test('a request that waits for a client goes to the server where the client comes back, and counts once', () => {
  Stage.play(TWO, stage => {
    const { world } = stage
    const holder = stage.holderOf('shop')
    const other = stage.other(holder)
    const { process, machine } = stage.client('shop')
    // It takes a while until the client is there.
    world.network.slow(machine, other.machine, 100)
    world.network.cut(process, holder.process)
    world.pass(10)
    const ended = stage.ask(holder, 'shop')
    world.pass(100)
    expect(ended()).toBe('')
    world.pass(5_000)
    expect(stage.holderOf('shop')).toBe(other)
    expect(ended()).toBe('ok')
    expect(holder.server?.getStats().pendingResponses).toBe(0)
  })
})

test('a request whose tunnel goes elsewhere and comes back counts once', () => {
  Stage.play(TWO, stage => {
    const { world } = stage
    const holder = stage.holderOf('shop')
    const other = stage.other(holder)
    const { process, machine } = stage.client('shop')
    world.network.slow(machine, other.machine, 100)
    world.network.block(holder.machine, other.machine)
    world.network.cut(process, holder.process)
    world.pass(10)
    const ended = stage.ask(holder, 'shop')
    world.pass(1_000)
    expect(stage.holderOf('shop')).toBe(other)
    expect(ended()).toBe('')
    world.killServer(other, false)
    world.pass(5_000)
    expect(stage.holderOf('shop')).toBe(holder)
    expect(ended()).toBe('ok')
    expect(holder.server?.getStats().pendingResponses).toBe(0)
  })
})

test('a server that stops while a claim waits for a new directory claims nothing any more', () => {
  Stage.play(TWO, stage => {
    const { world } = stage
    const holder = stage.holderOf('shop')
    world.killClient(stage.client('shop'), false)
    world.pass(40_000)
    world.redis.kill()
    world.startRedis(true)
    world.pass(3_000)
    world.redis.kill()
    world.startRedis(true)
    world.pass(200)
    world.startClient(stage.client('shop'))
    world.pass(500)
    const before = world.granted.length
    world.stopServer(holder)
    world.pass(1_000)
    // Nothing of it is left, which `stopServer` looks at, and only the other one grants.
    world.pass(10_000)
    expect(world.granted.slice(before).map(({ name }) => name)).toEqual(['shop'])
    expect(stage.holderOf('shop')).not.toBe(holder)
  })
})

test('a name whose lease is over while the directory is away is free when it is back, however often it was claimed meanwhile', () => {
  Stage.play(TWO, stage => {
    const { world } = stage
    const place = stage.client('shop')
    world.killClient(place, false)
    world.pass(1_000)
    // Without its secret: it has to wait, and tries again and again.
    world.startClient(place)
    world.pass(8_000)
    world.redis.kill()
    world.pass(40_000)
    world.startRedis(false)
    world.pass(5_000)
    expect(stage.answers()).toEqual(['ok'])
  })
})
