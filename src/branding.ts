// The operator of a server, as shown on its pages for visitors.

import { optionInvalid } from './errors.ts'

/** The name, contact and logo of the operator. */
export interface Branding {
  /** The name of the operator, up to 80 characters. Default none. */
  readonly name?: string
  /** The place where visitors and users get help: an email address or an `https://` URL. Default none. */
  readonly contact?: string
  /**
   * A picture: the text of an SVG file without scripts and without links to other files, or an image as a `data:` URL. At most 64 KiB.
   * Default none.
   */
  readonly logo?: string
}

/** The maximum size of a logo in characters. Each page contains it. */
const MAX_LOGO_CHARS = 65_536

const EMAIL = /^[^\s@:/?#]+@[^\s@:/?#]+$/
/**
 * A pattern for elements and attributes that load or run something. In a picture, Chromium does neither, so the
 * picture would be incomplete.
 */
const ACTIVE =
  /<script|<foreignObject|\bon\w+\s*=|\bhref\s*=\s*["'](?!#|data:)|url\(\s*["']?(?!#|data:)|<!ENTITY/i

/** Checks the branding. The logo of the result is a `data:` URL. Throws `OPTION_INVALID`. */
export function checkBranding({ name, contact, logo }: Branding): Branding {
  if (name !== undefined && (name.trim() === '' || name.length > 80))
    throw optionInvalid('branding.name must have 1 to 80 characters.')
  if (contact !== undefined && !EMAIL.test(contact) && URL.parse(contact)?.protocol !== 'https:')
    throw optionInvalid(`branding.contact "${contact}" is no email address and no https:// URL.`)
  return {
    ...(name !== undefined && { name }),
    ...(contact !== undefined && { contact }),
    ...(logo !== undefined && { logo: logoUrl(logo) }),
  }
}

function logoUrl(logo: string): string {
  if (logo.length > MAX_LOGO_CHARS) throw optionInvalid('branding.logo must be a picture of at most 64 KiB.')
  if (/^data:image\/(?:svg\+xml|png|jpeg|webp)[;,][^\s"<>]*$/.test(logo)) return logo
  if (!/^\s*(?:<\?xml[^>]*>|<!--[\s\S]*?-->|<!DOCTYPE[^>[]*>|\s)*<svg[\s>]/.test(logo))
    throw optionInvalid('branding.logo is neither the text of an SVG file nor a data: URL of an image.')
  if (ACTIVE.test(logo))
    throw optionInvalid('branding.logo must be an SVG without scripts and without links to other files.')
  return `data:image/svg+xml;base64,${Buffer.from(logo).toString('base64')}`
}
