// A client whose connection an agent makes, as one for a proxy does: the `ws` carrier, end to end.

import { expect, test } from 'bun:test'
import { Agent } from 'node:http'
import { TunnelClient } from '../../src/index.ts'
import { startTunnel } from '../support/tunnel.ts'

/** Counts the connections that it makes. */
class CountingAgent extends Agent {
  count = 0

  override createConnection(
    ...args: Parameters<NonNullable<Agent['createConnection']>>
  ): ReturnType<NonNullable<Agent['createConnection']>> {
    this.count++
    return super.createConnection(...args)
  }
}

test.each(['streams', 'json'] as const)(
  'the %s wire goes through the agent, and nothing beside it',
  async wire => {
    const agent = new CountingAgent()
    using origin = Bun.serve({
      port: 0,
      fetch: async request => new Response(new Uint8Array(await request.arrayBuffer()).toReversed()),
    })
    await using tunnel = await startTunnel({ port: origin.port ?? 0, agent }, { wire })
    const sent = crypto.getRandomValues(new Uint8Array(65_000))
    for (let n = 0; n < 20; n++) {
      const answer = await fetch(`http://127.0.0.1:${tunnel.port}/`, {
        method: 'POST',
        headers: { host: tunnel.host },
        body: sent,
      })
      expect(Buffer.compare(Buffer.from(await answer.arrayBuffer()), Buffer.from(sent.toReversed()))).toBe(0)
    }
    expect(agent.count).toBe(1)
    expect(tunnel.server.getStats().connections).toBe(1)
  },
)

test('a pin, which an agent would not verify, is refused instead of ignored', () => {
  const pin = `sha256//${'A'.repeat(43)}=`
  const make = () => new TunnelClient({ server: 'https://localhost', port: 1, agent: new Agent(), pin })
  expect(make).toThrow('pin cannot be verified where an agent makes the connection')
})
