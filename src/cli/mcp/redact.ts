// Masks secrets in texts for an agent: values with a secret's name, and values that look like keys. The inspector
// itself masks header fields. A secret with neither is not masked.

const MASK = '••••••'
const NAME =
  '[\\w.-]{0,40}(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential|authorization|cookie|session|signature|csrf|otp|cvc|card[_-]?number)[\\w.-]{0,40}'

/** Every repetition is bounded, so that a stranger's text takes linear time. */
const RULES: readonly (readonly [RegExp, string])[] = [
  // JSON: strings, and numbers.
  [
    new RegExp(`("${NAME}"\\s{0,20}:\\s{0,20})(?:"(?:[^"\\\\]|\\\\.)*"?|-?\\d[\\d.eE+-]*)`, 'gi'),
    `$1"${MASK}"`,
  ],
  // Forms and queries.
  [new RegExp(`((?:^|[?&;\\s])${NAME}=)[^&;\\s"]+`, 'gi'), `$1${MASK}`],
  // Parts of a multipart form.
  [
    new RegExp(
      `(name="${NAME}"[^\\r\\n]{0,200}\\r?\\n(?:[^\\r\\n]{1,200}\\r?\\n){0,5}\\r?\\n)[^\\r\\n]+`,
      'gi',
    ),
    `$1${MASK}`,
  ],
  // JSON Web Tokens; keys by their prefixes; bearer tokens; private keys.
  [/\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g, MASK],
  [/\b(?:sk|pk|rk|whsec|ghp|gho|ghs|ghu|github_pat|glpat|xox[abpors]|AKIA|AIza)[_-]?[\w-]{16,}/g, MASK],
  [/\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi, `$1 ${MASK}`],
  [/-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|$)/g, MASK],
]

export function redacted(text: string): string {
  return RULES.reduce((rest, [pattern, mask]) => rest.replace(pattern, mask), text)
}

/** Masks every text in a JSON value. */
export function redactedValue(value: unknown): unknown {
  if (typeof value === 'string') return redacted(value)
  if (Array.isArray(value)) return value.map(redactedValue)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, redactedValue(one)]))
}
