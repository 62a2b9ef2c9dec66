// PROXY headers of trusted proxies as a part of a server: the connection continues after its header, with the visitor's address.

import type { Install } from '../../server/contracts/part.ts'
import { acceptProxied, type ProxiedHost } from './proxied.ts'

export const installProxyProtocol: Install = server => ({
  name: 'PROXY protocol',
  enterPort(socket, admitted, accept) {
    if (!server.settings.acceptsProxyProtocol) return undefined
    const host: ProxiedHost = {
      deadlines: server.deadlines,
      headerTimeoutMs: server.limits.headTimeoutMs,
      isTrusted: address => server.settings.trusted?.has(address) === true,
      accept: (behind, header) => {
        if (header === undefined) return accept(behind, 'direct')
        // After a header without an address, the connection has the proxy's own. Forwarding headers on it come from
        // the visitor, not the proxy.
        return accept(behind, header.route === undefined ? 'untrusted' : header.isTls ? 'https' : 'direct')
      },
      failed: error => server.failed(error),
    }
    return acceptProxied(socket, host, admitted)
  },
})
