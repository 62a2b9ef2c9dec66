// The client alone, as `localtunnels/client`: for programs that share a port and run no server.

export type { AppWebSocket, HandlerServer, Message, WebSocketHandlers } from './client/contracts/handler.ts'
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
export type { Tunnel } from './client/tunnels/tunnel.ts'
export { ERRORS, type ErrorCode, type ErrorEntry, TunnelError } from './errors.ts'
export { upgradeWebSocket } from './parts/functions/upgrades.ts'
export { type Reservation, type ReserveOptions, reserve } from './reserve.ts'
export { type ConnectToOptions, connectTo, connectTunnel, TunnelClient } from './tunnel-client.ts'
export { VERSION } from './version.ts'
