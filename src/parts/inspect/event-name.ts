// The name by which a developer distinguishes requests to one path: that of a webhook's event, or of a GraphQL operation.

import { contentOf, SEARCHED_FLOOR_BYTES } from './content.ts'
import type { Entry } from './entry.ts'
import { isJsonFault, type JsonNode, parseJson } from './json-text.ts'
import { headerOf } from './secrets.ts'

const FIELDS = [
  'x-github-event',
  'x-gitea-event',
  'x-gitlab-event',
  'x-shopify-topic',
  'x-event-key',
  'ce-type',
] as const
/** The maximum size of a body that is read for the name, because every request is checked. */
const MAX_BODY_BYTES = 131_072
const MAX_NAME_CHARS = 120

/** Returns the name of the event. `undefined` if none is found. */
export function eventNameOf(entry: Entry): string | undefined {
  const { requestHead, requestBody, path } = entry
  for (const field of FIELDS) {
    const value = headerOf(requestHead, field)
    if (value !== '') return value.slice(0, MAX_NAME_CHARS)
  }
  const isSmall = requestBody.keptBytes > 1 && requestBody.keptBytes <= MAX_BODY_BYTES
  const isGraphQl = /\/graphql\b/.test(path)
  const isSigned = ['stripe-signature', 'webhook-signature', 'svix-signature', 'x-slack-signature'].some(
    field => headerOf(requestHead, field) !== '',
  )
  if (!isSmall || !(isGraphQl || isSigned)) return undefined
  const text = new TextDecoder().decode(contentOf(entry, 'request', true, SEARCHED_FLOOR_BYTES).bytes)
  const root = parseJson(text, true)
  if (isJsonFault(root)) return undefined
  const name = isGraphQl
    ? operationOf(root)
    : // Slack wraps its events: the inner one says more than "event_callback".
      (textIn(entryIn(root, 'event'), 'type') ?? textIn(root, 'type') ?? textIn(root, 'event_type'))
  return name?.slice(0, MAX_NAME_CHARS)
}

function operationOf(root: JsonNode): string | undefined {
  const [, kind = 'query', named] =
    /^\s*(query|mutation|subscription)\b\s*([_A-Za-z]\w*)?/.exec(textIn(root, 'query') ?? '') ?? []
  const name = textIn(root, 'operationName') ?? named
  return name === undefined ? undefined : `${kind} ${name}`
}

function entryIn(node: JsonNode | undefined, name: string): JsonNode | undefined {
  return node?.entries.find(entry => entry.name === `"${name}"`)?.value
}

function textIn(node: JsonNode | undefined, name: string): string | undefined {
  const found = entryIn(node, name)
  return found?.kind === 'string' && !found.isCut ? JSON.parse(found.raw) : undefined
}
