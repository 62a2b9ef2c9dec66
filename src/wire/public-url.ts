// Checks the public URL of a tunnel that the server sent. The client shows it, passes it to programs and probes it.

const SCHEMES: ReadonlySet<string> = new Set(['http:', 'https:', 'tcp:', 'udp:', 'tls:', 'private:'])
const MAX_CHARS = 2_048

/** Whether the text is a URL of a tunnel: visible ASCII, of a known scheme, and without a login. */
export function isPublicUrl(text: unknown): text is string {
  if (typeof text !== 'string' || text.length > MAX_CHARS) return false
  if (!/^[\x21-\x7e]+$/.test(text) || !URL.canParse(text)) return false
  const { protocol, username, password } = new URL(text)
  return SCHEMES.has(protocol) && username === '' && password === ''
}
