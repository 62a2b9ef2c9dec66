// The client alone, as `localtunnels/client`: for programs that share a port and never serve one.

export type { Exchange, SeenMessage, WaitOptions, Watchable } from './client/contracts/watching.ts'
export type { ClientLimits } from './client/limits.ts'
export type {
  AwayOptions,
  ConnectOptions,
  FetchHandler,
  HealthOptions,
  HttpTunnelOptions,
  InboxWishOptions,
  InspectOptions,
  OneServer,
  OriginOptions,
  RouteOptions,
  SharedTunnelOptions,
  TcpTunnelOptions,
  TlsTunnelOptions,
  TunnelClientEvents,
  TunnelClientOptions,
  TunnelState,
  UdpTunnelOptions,
  VerifyOptions,
} from './client/options.ts'
export { AppWebSocket, type Message, type WebSocketHandlers } from './client/origins/app-websocket.ts'
export { type HandlerServer, upgradeWebSocket } from './client/origins/upgrades.ts'
export type { Tunnel } from './client/tunnels/tunnel.ts'
export { ERRORS, type ErrorCode, type ErrorEntry, TunnelError } from './errors.ts'
export { type Reservation, type ReserveOptions, reserve } from './reserve.ts'
export { type ConnectToOptions, connectTo, connectTunnel, TunnelClient } from './tunnel-client.ts'
export { VERSION } from './version.ts'
