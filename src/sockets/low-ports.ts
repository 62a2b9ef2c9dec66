// Advice for ports that only root may listen on.

/** Returns the advice for ports below 1024. `program`: path of the runtime, or of a single executable. */
export function lowPortAdvice(program: string, platform: NodeJS.Platform = process.platform): string {
  const right = platform === 'linux' ? `run "sudo setcap cap_net_bind_service=+ep ${program}" once, ` : ''
  return `To listen on a port below 1024 without being root, ${right}start the server as a service (docs/operating.md), or choose a port from 1024 up.`
}
