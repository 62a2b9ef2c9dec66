// The parts of one client, in the order in which bytes for its apps pass them.

import type { Install, Part, PartClient } from './contracts/part.ts'
import type { TextWire } from './contracts/wire.ts'
import type { Probing } from './health.ts'

export class Parts {
  readonly all: readonly Part[]

  constructor(installs: readonly Install[], client: PartClient) {
    this.all = installs.flatMap(install => install(client) ?? [])
  }

  /** `undefined`: servers have to agree on the streams wire. */
  get textWire(): TextWire | undefined {
    return this.all.find(({ textWire }) => textWire !== undefined)?.textWire
  }

  /** `undefined`: no app of HTTP/2 can be checked. */
  get loadHttp2Probing(): (() => Promise<Probing>) | undefined {
    return this.all.find(({ loadHttp2Probing }) => loadHttp2Probing !== undefined)?.loadHttp2Probing
  }
}
