// The tools that give a port of this machine a URL, and remove it. The user chooses the server and its token; no
// argument names them.

import type { TunnelClientOptions } from '../../client/options.ts'
import { optionInvalid, TunnelError } from '../../errors.ts'
import { type ClientEnd, createClient, type ServerEnd, type TunnelEnd } from '../ends.ts'
import { type Destination, serverOption } from '../settings/destination.ts'
import { startEmbeddedServer } from '../sharing/embedded-server.ts'
import type { Tool } from './tool.ts'

/** The maximum number of ports that an agent shares at once. More would be a mistake. */
const MAX_SHARED = 20

export class AgentShares {
  readonly #destination: Destination
  readonly #options: Omit<TunnelClientOptions, 'server'>
  readonly #tunnels = new Map<string, TunnelEnd>()
  #client: ClientEnd | undefined
  #embedded: ServerEnd | undefined
  #opening: Promise<ClientEnd> | undefined
  #asked = 0

  constructor(destination: Destination, options: Omit<TunnelClientOptions, 'server'>) {
    this.#destination = destination
    this.#options = options
  }

  /** The inspector's page. `undefined` while nothing is shared. */
  get page(): string | undefined {
    return this.#tunnels.size > 0 ? this.#client?.inspectorUrl : undefined
  }

  get tools(): readonly Tool[] {
    return [
      {
        name: 'share_port',
        title: 'Share a port',
        description:
          'Gives an HTTP app on a port of this machine a URL, through the server of the user, and captures what comes. Others can reach the app then, until stop_sharing.',
        arguments: {
          port: {
            type: 'integer',
            description: 'Where the app listens on this machine',
            minimum: 1,
            maximum: 65_535,
          },
          name: { type: 'string', description: 'Name wished for in the URL. Default: a friendly one' },
        },
        required: ['port'],
        isReading: false,
        isOpen: true,
        call: async given => {
          const tunnel = await this.share(given.number('port') ?? 0, given.text('name'))
          const here =
            this.#embedded === undefined ? '' : ' Only this machine can open it: no server is set up.'
          return {
            said: `${tunnel.url} leads to port ${given.number('port')} now; its name is ${tunnel.name}.${here}`,
          }
        },
      },
      {
        name: 'stop_sharing',
        title: 'Stop sharing',
        description: "Takes a URL back that share_port gave. Tunnels of other sessions are the user's.",
        arguments: { name: { type: 'string', description: 'Name, from share_port' } },
        required: ['name'],
        isReading: false,
        call: async given => {
          const name = given.text('name') ?? ''
          const tunnel = this.#tunnels.get(name)
          if (tunnel === undefined)
            throw new TunnelError('TUNNEL_NOT_FOUND', 'share_port gave no tunnel of this name.')
          this.#tunnels.delete(name)
          await tunnel.close()
          return { said: `${tunnel.url} is closed.` }
        },
      },
    ]
  }

  async share(port: number, subdomain: string | undefined): Promise<TunnelEnd> {
    if (this.#asked >= MAX_SHARED) throw optionInvalid(`${MAX_SHARED} ports are shared: stop one first.`)
    this.#asked++
    try {
      this.#opening ??= this.#open()
      const client = await this.#opening
      const tunnel = await client.http({ port, ...(subdomain !== undefined && { subdomain }) })
      this.#tunnels.set(tunnel.name, tunnel)
      return tunnel
    } catch (error) {
      this.#opening = this.#client === undefined ? undefined : this.#opening
      throw error
    } finally {
      this.#asked = this.#tunnels.size
    }
  }

  async #open(): Promise<ClientEnd> {
    const server = serverOption(this.#destination, this.#options.ca)
    if (server === undefined) this.#embedded ??= await startEmbeddedServer()
    this.#client = await createClient({
      ...this.#options,
      server: server ?? `http://127.0.0.1:${this.#embedded?.port}`,
      token: '',
      inspect: true,
      ...(server === undefined && { proxy: false as const }),
    })
    return this.#client
  }

  async close(): Promise<void> {
    await this.#client?.disconnect()
    await this.#embedded?.stop()
  }
}
