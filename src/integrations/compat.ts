// `localtunnels/compat`: the functions of two other packages, over a tunnel of ours. A program changes its import, and names a server.

import { localtunnel } from './compat/localtunnel.ts'
import * as ngrok from './compat/ngrok.ts'
import { NgrokSessionBuilder } from './compat/ngrok-session.ts'

export { type LocaltunnelOptions, LocaltunnelTunnel } from './compat/localtunnel.ts'
export {
  authtoken,
  disconnect,
  forward,
  forward as connect,
  getListener,
  getListenerByUrl,
  kill,
  type Listener,
  listeners,
} from './compat/ngrok.ts'
export type { ForwardOptions } from './compat/ngrok-options.ts'
export { NgrokSession, NgrokSessionBuilder } from './compat/ngrok-session.ts'
export default localtunnel

type Required = typeof localtunnel &
  typeof ngrok & {
    readonly default: typeof localtunnel
    readonly connect: typeof ngrok.forward
    readonly NgrokSessionBuilder: typeof NgrokSessionBuilder
  }

/** What `require('localtunnels/compat')` gives: the function of one package, with those of the other. */
const required: Required = Object.assign(localtunnel, ngrok, {
  default: localtunnel,
  connect: ngrok.forward,
  NgrokSessionBuilder,
})

export { required as 'module.exports' }
