// `localtunnels/compat`: the functions of two other packages, on our tunnels. A program changes its import, and names a server.

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
export {
  NgrokSession,
  NgrokSessionBuilder,
  NgrokSessionBuilder as SessionBuilder,
} from './compat/ngrok-session.ts'
export default localtunnel

/** `listen` takes our options, unlike the function of that name in `@ngrok/ngrok`. */
const { listen: _listen, ...ofNgrok } = ngrok

type Required = typeof localtunnel &
  Omit<typeof ngrok, 'listen'> & {
    readonly default: typeof localtunnel
    readonly connect: typeof ngrok.forward
    readonly NgrokSessionBuilder: typeof NgrokSessionBuilder
    readonly SessionBuilder: typeof NgrokSessionBuilder
  }

/** The exports of `require('localtunnels/compat')`: the function of one package, with those of the other. */
const required: Required = Object.assign(localtunnel, ofNgrok, {
  default: localtunnel,
  connect: ngrok.forward,
  NgrokSessionBuilder,
  SessionBuilder: NgrokSessionBuilder,
})

export { required as 'module.exports' }
