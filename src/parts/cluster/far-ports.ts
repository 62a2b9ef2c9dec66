// The ports whose tunnels other servers have. This one also listens there, and passes visitors on. It gets an event
// for each change, and asks for all ports from time to time, because a killed server sends no event.

import { type Directory, isPortName } from '../../directory.ts'
import type { PartServer, WholeServer } from '../../server/contracts/part.ts'

export class FarPorts {
  readonly #node: string
  readonly #directory: Directory
  readonly #server: PartServer
  readonly #ports: WholeServer['ports']
  readonly #open = new Set<string>()
  /** The ports that could not be opened, which was reported. */
  readonly #refused = new Set<string>()
  #isOver = true

  constructor(node: string, directory: Directory, server: PartServer, ports: WholeServer['ports']) {
    this.#node = node
    this.#directory = directory
    this.#server = server
    this.#ports = ports
  }

  start(): void {
    this.#isOver = false
  }

  /** Called when another server has the tunnel; with `''`, when one of its servers lost it. */
  changed(name: string, node: string): void {
    if (this.#isOver || !isPortName(name)) return
    if (node === this.#node) this.#drop(name)
    else if (node !== '') this.#take(name)
    else void this.#check(name).catch((error: Error) => this.#server.failed(error))
  }

  /** Asks for all ports. Rejects if the directory cannot be reached. */
  async look(): Promise<void> {
    if (this.#isOver) return
    const held = new Set(await this.#directory.ports())
    for (const name of [...this.#open]) if (!held.has(name)) this.#drop(name)
    for (const name of held) if (!this.#open.has(name)) await this.#check(name)
  }

  /** Tries to open refused ports again, because the program that had them may be gone. */
  async tryAgain(): Promise<void> {
    for (const name of [...this.#refused]) await this.#check(name)
  }

  stop(): void {
    this.#isOver = true
    for (const name of [...this.#open]) this.#drop(name)
  }

  async #check(name: string): Promise<void> {
    const nodes = await this.#directory.find(name)
    if (nodes.some(({ id }) => id !== this.#node)) this.#take(name)
    else this.#drop(name)
  }

  #take(name: string): void {
    const { kind, port } = portOf(name)
    // The operator names the servers of a port by their ranges.
    if (this.#isOver || this.#open.has(name) || !this.#server.settings.ports[kind].includes(port)) return
    this.#open.add(name)
    this.#ports.openElsewhere(kind, port).then(
      () => void this.#refused.delete(name),
      (error: Error) => {
        this.#open.delete(name)
        if (this.#refused.has(name)) return
        this.#refused.add(name)
        this.#server.failed(error)
      },
    )
  }

  #drop(name: string): void {
    this.#refused.delete(name)
    if (!this.#open.delete(name)) return
    const { kind, port } = portOf(name)
    this.#ports.closeElsewhere(kind, port)
  }
}

function portOf(name: string): { readonly kind: 'tcp' | 'udp'; readonly port: number } {
  return { kind: name.startsWith('udp') ? 'udp' : 'tcp', port: Number(name.slice(4)) }
}
