// PROXY headers of trusted proxies as a part of a server: a connection goes on behind its header, under the visitor's address.

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
        // A header without an address leaves the proxy's own. Forwarding headers behind it are the visitor's words, not the proxy's.
        return accept(behind, header.route === undefined ? 'untrusted' : header.isTls ? 'https' : 'direct')
      },
      failed: error => server.failed(error),
    }
    return acceptProxied(socket, host, admitted)
  },
})
