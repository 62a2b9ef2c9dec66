// The pages that the server shows to visitors, of errors and others, in the design of the product's other pages.

import { pageParts } from '../../tools/page-style.ts' with { type: 'macro' }
import type { Branding } from '../branding.ts'
import { ERRORS, type ErrorCode, type ErrorEntry } from '../errors.ts'
import type { ErrorPage } from './error-answer.ts'

/** The codes for which a visitor should wait for the time in Retry-After. */
const TIMED: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['RATE_LIMITED', 'CIRCUIT_OPEN'])

/** A title and text for a visitor, who knows the app and its address but nothing of tunnels. */
type Words = readonly [title: string, text: string]

const FINE = 'The tunnel works, and so does your connection.'

const FAULTS: Readonly<Record<ErrorEntry['fault'], Words>> = {
  visitor: ['This request was not accepted', 'Nothing is broken, but the app did not get this request.'],
  server: [
    'The tunnel server has a problem',
    'Your connection is fine, and the app behind the server may be, too.',
  ],
  client: ['The app is offline', 'The computer that shares this app is not connected now.'],
  origin: ['The app has a problem', `${FINE} The app behind it did not respond properly.`],
  user: ['The app cannot be reached', 'The tunnel server is fine, and so is your connection.'],
}

/** Words for codes that visitors meet often, or can act on. */
const WORDS: Partial<Record<ErrorCode, Words>> = {
  TUNNEL_NOT_FOUND: [
    'No tunnel is open at this address',
    'The address may have a typing error, or the computer behind it is not connected now.',
  ],
  HOST_UNKNOWN: ['Nothing is shared at this address', 'The address may have a typing error.'],
  TUNNEL_BUSY: ['The app is busy', 'It has as many requests as it can take. Nothing is broken.'],
  SERVER_STARTING: ['The server has just started', 'The app comes back in a moment, if it was here before.'],
  SERVER_DRAINING: ['The server restarts', 'It takes no new visitors for a moment.'],
  ORIGIN_REFUSED: ['The app is not running', `${FINE} The app behind it did not accept the connection.`],
  ORIGIN_TIMEOUT: ['The app takes too long', `${FINE} The app behind it did not respond in time.`],
  CIRCUIT_OPEN: ['The app has a problem', 'It failed too often, so the server sends it nothing for a while.'],
  BODY_TOO_LARGE: ['This upload is too large', 'The address does not take requests of this size.'],
  ADDRESS_REFUSED: [
    'You cannot visit this app from here',
    'It is shared with certain networks. Ask the person who shares it to add yours.',
  ],
  BLOCKED: ['This address is blocked', 'The operator of the server does not allow this visit.'],
  RATE_LIMITED: [
    'Too many requests',
    'This address takes a limited number of requests from each visitor. Nothing is broken.',
  ],
  ACCESS_REQUIRED: [
    'This app is protected',
    'It is shared with people who have a password, a token or a link. Ask the person who shares it.',
  ],
  CERTIFICATE_REQUIRED: [
    'This app asks for a certificate',
    'Choose yours when the browser asks, or ask the person who shares the app.',
  ],
  LINK_REFUSED: [
    'This link does not work any more',
    'It has expired, or was used or revoked. Ask the person who shares the app for a new one.',
  ],
  LOGIN_REFUSED: [
    'You are not signed in',
    'The login did not succeed, or this account may not visit the app. Ask the person who shares it.',
  ],
  ISSUER_UNAVAILABLE: [
    'Signing in does not work now',
    'The service that confirms who you are cannot be reached.',
  ],
  GUARD_REFUSED: ['You cannot visit this app', 'Ask the person who shares it.'],
  TUNNEL_EXPIRED: ['This app is no longer shared', 'It was shared for a limited time, which is over.'],
}

// Style and script are constants, so that the policy can contain their hashes and nothing else can run.
const PARTS = pageParts()
export const PAGE_STYLE: string = PARTS.style
export const PAGE_STYLE_HASH: string = PARTS.styleHash

// Counts the remaining seconds on a page that says how long to wait. The animation of the dot is the clock, because
// it stops while the page is hidden.
export const PAGE_SCRIPT = `
var left=document.querySelector('.left'),seconds=left&&parseInt(left.textContent),beats=0,busy=false
function look(){
if(left&&--seconds>0){left.textContent=seconds+' s';return}
if(busy||++beats>300&&beats%10)return
busy=true
if(left)return location.reload()
fetch(location.href,{method:'HEAD',cache:'no-store',redirect:'manual'}).then(function(answer){
busy=false
if(!answer.headers.has('x-localtunnels-error'))location.reload()},function(){busy=false})}
document.querySelector('.dot').addEventListener('animationiteration',look)
`

// The SHA-256 of the exact text, which a test computes again.
export const PAGE_SCRIPT_HASH = 'sha256-u0B8kJTQY7n+aZMaqyDlZIuJwqAM7WtkK9s6w25y9Ww='

/** Adds a copy button to each command, if the browser allows a page to copy. */
export const COPY_SCRIPT = `
document.querySelectorAll('li code').forEach(function(code){
var button=document.createElement('button')
button.className='copy'
button.textContent='Copy'
button.onclick=function(){navigator.clipboard.writeText(code.textContent).then(function(){button.textContent='Copied'})}
if(navigator.clipboard)code.after(button)})
`

export const COPY_SCRIPT_HASH = 'sha256-J5Kt6CqdZ839KlC5dl9HpNH2KI32vZ1FUSoq7bYcgKs='

/** The Content-Security-Policy of each page. The page itself contains the product's mark and the operator's logo. */
export const PAGE_POLICY: string = `default-src 'none'; style-src '${PAGE_STYLE_HASH}'; img-src data:; base-uri 'none'; frame-ancestors 'none'`

const ERROR_POLICY = `${PAGE_POLICY}; script-src '${PAGE_SCRIPT_HASH}'; connect-src 'self'; form-action 'none'`

/** The longest wait in seconds that a page counts down. Longer waits are shown in minutes. */
const MAX_COUNTED_SECONDS = 120

/** Makes the page of an error, for `errorAnswer`. */
export const errorPage: ErrorPage = (code, options) => {
  const entry = ERRORS[code]
  const { fault, meaning, operator, status, retryable } = entry
  const action = (fault === 'server' ? operator : undefined) ?? entry.action
  const [title, text] = WORDS[code] ?? FAULTS[fault]
  // A person does not see the header Retry-After, so the page says it.
  const [, given] = options.headers?.find(([name]) => name.toLowerCase() === 'retry-after') ?? []
  const seconds = Number(given ?? options.retryAfterSeconds)
  // The value of Retry-After may be a date.
  const isTimed = seconds > 0 && TIMED.has(code)
  const isCounted = isTimed && seconds <= MAX_COUNTED_SECONDS
  // A request that was refused for its content will be refused again; anything else may work in a second.
  const polls = retryable && !isTimed && (fault === 'client' || fault === 'origin' || fault === 'server')
  const wait = isCounted ? `<b class="left">${seconds} s</b>` : `<b>${Math.ceil(seconds / 60)} min</b>`
  const again = isTimed
    ? `<p class="again">${isCounted ? DOT : ''}<span>You can try again in ${wait}.</span></p>`
    : polls
      ? `<p class="again" role="status">${DOT}This page tries again each second, and opens the app when it is back.</p>`
      : ''
  // The title of a page for visitors already says it.
  const what = options.detail ?? (meaning === `${title}.` ? '' : meaning)
  const limit = LIMITS[code]
  const isOwners = fault !== 'visitor' || WORDS[code] === undefined || limit !== undefined
  const [heading, todo, command] = limit
    ? ([OWNERS.user, ...limit] as const)
    : ([OWNERS[fault], `${what} ${action}`.trim(), commandOf(code, options.host)] as const)
  const owner = `<div class="todo"><h2>${heading}</h2><p>${withFlags(todo)}</p>${command === '' ? '' : `<code>${command}</code>`}</div>`
  const html = shell(
    title,
    `${art(fault)}
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(text)}</p>
${again}
${isOwners ? owner : ''}`,
    { ...options, code: `${options.status ?? status} ${code}` },
    isCounted || polls ? `<script>${PAGE_SCRIPT}</script>\n` : '',
  )
  return { html, policy: ERROR_POLICY }
}

const DOT = '<i class="dot"></i>'

/** The heading of the box for the owner. */
const OWNERS: Readonly<Record<ErrorEntry['fault'], string>> = {
  visitor: 'Details',
  server: 'Do you run this server?',
  client: 'Is it yours?',
  origin: 'Is it yours?',
  user: 'Is it yours?',
}

/** The limits that the owner of the tunnel set. The page says how to change them. */
const LIMITS: Partial<Record<ErrorCode, readonly [what: string, command: string]>> = {
  RATE_LIMITED: ['Raise the limit when you start the client:', 'localtunnels 3000 --rate 300/1m'],
  ADDRESS_REFUSED: [
    'Name the networks when you start the client:',
    'localtunnels 3000 --allow 203.0.113.0/24',
  ],
}

/** Returns the command with which the owner gets the name again. Empty for none. */
function commandOf(code: ErrorCode, host: string): string {
  const [name = '', ...domain] = host.split('.')
  const isName = code === 'TUNNEL_NOT_FOUND' && domain.length > 0 && /^[a-z][a-z\d-]*$/.test(name)
  return isName ? `localtunnels 3000 --subdomain ${name}` : ''
}

/** Draws the path from the browser through the tunnel to the app, with the broken part marked. */
function art(fault: ErrorEntry['fault']): string {
  const isApp = fault === 'visitor' || fault === 'origin'
  const light =
    fault === 'client' || fault === 'user' ? ' class="off" d="M84 39V27a6.5 6.5 0 0 1 13 0v12"' : LIGHT
  const cross = fault === 'origin' ? 'm113 34 8 8m0-8-8 8' : fault === 'server' ? 'm53 34 8 8m0-8-8 8' : ''
  const parts = [
    '<rect x="1" y="11" width="40" height="28" rx="4"/><path d="M1 19h40"/>',
    cross === '' ? '' : `<path class="cut" d="${cross}"/>`,
    fault === 'server' ? '' : '<path class="way" d="M47 39h20"/>',
    `<path class="arch" d="M72 39V23a15 15 0 0 1 30 0v16"/><path${light}/>`,
    fault === 'visitor' ? '<path class="off" d="M107 39h16"/>' : '',
    isApp ? `<path${fault === 'origin' ? ' class="off"' : ''} ${BROWSER}/>` : '',
  ]
  return `<svg class="art" width="176" height="44" viewBox="0 0 176 44" aria-hidden="true">${parts.join('')}</svg>`
}

const BROWSER = 'd="M137 11h30a3 3 0 0 1 3 3v20h-36V14a3 3 0 0 1 3-3zM129 39h46"'
const LIGHT = ' class="light" d="M84 39V27a6.5 6.5 0 0 1 13 0v12z"'

/** The footer of a page, and the operator's name above it. */
export interface Frame {
  readonly host: string
  readonly branding?: Branding | undefined
  readonly code?: string
  /** The text after our name. Default `, not the app`. */
  readonly who?: string
}

/** A page of the server that is not an error. Send it with `INFO_POLICY`. */
export interface Info extends Frame {
  readonly title: string
  readonly text: string
  /** Commands, each with its purpose. */
  readonly steps?: readonly (readonly [what: string, command: string])[]
}

export const INFO_POLICY: string = `${PAGE_POLICY}; script-src '${COPY_SCRIPT_HASH}'; form-action 'none'`

/** Returns a page in the design of the error pages. */
export function infoPage({ title, text, steps = [], ...frame }: Info): string {
  const items = steps.map(
    ([what, command]) => `<li>${escapeHtml(what)}<code>${escapeHtml(command)}</code></li>\n`,
  )
  const list = items.length === 0 ? '' : `<ol>\n${items.join('')}</ol>`
  // The operator's name replaces this, if there is one.
  const mark =
    list === '' || frame.branding?.name !== undefined ? '' : `<p class="brand">${MARK}localtunnels</p>\n`
  const main = `${mark}<h1>${escapeHtml(title)}</h1>\n<p>${escapeHtml(text)}</p>\n${list}`
  return shell(title, main, frame, list === '' ? '' : `<script>${COPY_SCRIPT}</script>\n`)
}

/** Returns text whose flags do not break at their dashes. */
const withFlags = (text: string): string =>
  escapeHtml(text).replace(/(?<=^|\s)--[a-z-]+/g, '<span class="flag">$&</span>')

const MARK =
  '<svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path class="a" d="M2 15V8a6 6 0 0 1 12 0v7"/><path class="l" d="M7 15V9.5a2.5 2.5 0 0 1 5 0V15z"/></svg>'

/** Returns a whole page. `main` is HTML. */
export function shell(title: string, main: string, frame: Frame, script = ''): string {
  const { host, branding = {}, code, who = ', not the app' } = frame
  const { name, contact, logo } = branding
  const picture = logo === undefined ? '' : `<img src="${escapeHtml(logo)}" alt="">`
  const brand =
    picture === '' && name === undefined ? '' : `<p class="brand">${picture}${escapeHtml(name ?? '')}</p>\n`
  const href = contact?.includes('://') ? contact : `mailto:${contact}`
  const help = contact === undefined ? '' : `<a href="${escapeHtml(href)}">${escapeHtml(contact)}</a>`
  const parts = [`${MARK}localtunnels${who}`, ...(help === '' ? [] : [help]), escapeHtml(host)]
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="robots" content="noindex">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="${PARTS.icon}">
<style>${PAGE_STYLE}</style>
<main>
${brand}${main}
</main>
<footer>${parts.map(part => `<span>${part}</span>`).join('')}${code === undefined ? '' : `<code>${code}</code>`}</footer>
${script}</html>
`
}

/** Escapes text for HTML, in elements and in quoted attributes. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}
