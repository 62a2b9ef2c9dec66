// The server with all of its parts: the only file that names them. A request passes their layers in the order of this list.

import { installAdmin } from './parts/admin/install.ts'
import { installMetrics } from './parts/admin/measuring.ts'
import { installBans } from './parts/bans/install.ts'
import { installCluster } from './parts/cluster/install.ts'
import { installCopies } from './parts/copies/install.ts'
import { installEvents } from './parts/events/install.ts'
import { installGuards } from './parts/guards/install.ts'
import { installHttp2 } from './parts/http2/install.ts'
import { installHttp3 } from './parts/http3/install.ts'
import { installInbox } from './parts/inbox/install.ts'
import { installJsonWire } from './parts/json-wire/install.ts'
import { installLanes } from './parts/lanes/install.ts'
import { installMiddlewares } from './parts/middlewares/install.ts'
import { installObservers } from './parts/observers/install.ts'
import { installPages } from './parts/pages/install.ts'
import { installPatience } from './parts/patience/install.ts'
import { installPressure } from './parts/pressure/install.ts'
import { installPrivate } from './parts/private/install.ts'
import { installProxyProtocol } from './parts/proxy-protocol/install.ts'
import { installRewriting } from './parts/rewriting/install.ts'
import { installShaping } from './parts/shaping/install.ts'
import { installTiming } from './parts/timing/install.ts'
import type { Install } from './server/contracts/part.ts'
import { TunnelServer as Server } from './server/server.ts'
import type { TunnelServerOptions } from './server/settings/options.ts'

/**
 * The parts of a server, in the order of their layers: first those that remove what a visitor may not send, then those that
 * observe, delay, refuse, change what is sent, and at last send it to another place. Wires and versions of HTTP have no layer.
 */
const PARTS: readonly Install[] = [
  installInbox,
  installEvents,
  installObservers,
  installMetrics,
  installTiming,
  installShaping,
  installPages,
  installBans,
  installGuards,
  installPatience,
  installPressure,
  installMiddlewares,
  installCopies,
  installAdmin,
  installCluster,
  installRewriting,
  installJsonWire,
  installHttp2,
  installHttp3,
  installPrivate,
  installProxyProtocol,
  installLanes,
]

/**
 * A tunnel server in this process: `start()` listens, `stop()` drains. Many servers may run in one process. Nothing
 * that a visitor or a client sends makes it throw; an internal error arrives as an `error` event.
 *
 * Throws `OPTION_INVALID` for options that cannot be used and `RUNTIME_UNSUPPORTED` outside of Bun.
 */
export class TunnelServer extends Server {
  /** Makes a server. `fixed` overrides internal bounds, for localtunnels' own tests. */
  constructor(options: TunnelServerOptions = {}, fixed: object = {}) {
    super(options, PARTS, fixed)
  }
}
