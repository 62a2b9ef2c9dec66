// Icons of 16 px, drawn with the colour of the text around them, and the mark.

const PATHS = {
  search: '<circle cx="7" cy="7" r="4.25"/><path d="m10.5 10.5 3 3"/>',
  more: '<path d="M3.5 8h0M8 8h0M12.5 8h0" stroke-width="2.25"/>',
  down: '<path d="m4.5 6.5 3.5 3.5 3.5-3.5"/>',
  right: '<path d="m6.5 4.5 3.5 3.5-3.5 3.5"/>',
  back: '<path d="M9.5 4 5.5 8l4 4"/>',
  replay: '<path d="M12.8 6.5A5 5 0 1 0 13 9M13 3v3.5H9.5"/>',
  pause: '<path d="M6 4v8M10 4v8"/>',
  play: '<path d="M5.5 4v8l6-4z" fill="currentColor"/>',
  copy: '<rect x="5.5" y="5.5" width="7.5" height="7.5" rx="1.5"/><path d="M10.5 3H4.5A1.5 1.5 0 0 0 3 4.5v6"/>',
  save: '<path d="M8 3v7M5 7.5 8 10.5l3-3M3.5 13h9"/>',
  close: '<path d="m4.5 4.5 7 7M11.5 4.5l-7 7"/>',
  ok: '<path d="m3.5 8.5 3 3 6-7"/>',
  warn: '<path d="M8 2.5 14 13H2zM8 6.5v3M8 11.4h0"/>',
  bad: '<circle cx="8" cy="8" r="5.75"/><path d="M8 5v3.5M8 10.9h0"/>',
  help: '<path d="M5.8 6a2.3 2.3 0 1 1 3.4 2c-.8.5-1.2.9-1.2 1.8M8 12.2h0"/>',
  note: '<path d="M3 4.5A1.5 1.5 0 0 1 4.5 3h7A1.5 1.5 0 0 1 13 4.5v5a1.5 1.5 0 0 1-1.5 1.5H7l-3 2.5V11A1 1 0 0 1 3 10z"/>',
  pin: '<path d="M6 2.5h4M6.5 2.5V7L4.5 9.5h7L9.5 7V2.5M8 9.5V14"/>',
  plug: '<path d="M5 2.5v3M11 2.5v3M3.5 5.5h9V8a4.5 4.5 0 0 1-9 0zM8 12.5v2"/>',
} as const

type IconName = keyof typeof PATHS

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg
      width="16"
      height="16"
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      dangerouslySetInnerHTML={{ __html: PATHS[name] }}
    />
  )
}

export function Mark() {
  return (
    <svg class="mark" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
      <path class="a" d="M2 15V8a6 6 0 0 1 12 0v7" />
      <path class="l" d="M7 15V9.5a2.5 2.5 0 0 1 5 0V15z" />
    </svg>
  )
}

interface AddressProps {
  readonly class?: string
  readonly title?: string
  readonly url: string
  readonly children?: preact.ComponentChildren
}

/** A link, if a browser can open it. */
export const Address = ({ url, children = url, ...more }: AddressProps) =>
  url.startsWith('http') ? (
    <a {...more} href={url} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  ) : (
    <a {...more}>{children}</a>
  )

interface IconButtonProps extends Omit<preact.ButtonHTMLAttributes<HTMLButtonElement>, 'class'> {
  readonly class?: string
  readonly icon: IconName
  /** The name for those who do not see it. */
  readonly label: string
}

export const IconButton = ({ icon, label, class: name = '', ...more }: IconButtonProps) => (
  <button type="button" class={`btn bare icon ${name}`} aria-label={label} {...more}>
    <Icon name={icon} />
  </button>
)

interface BannerProps {
  readonly look: 'ok' | 'warn' | 'bad' | ''
  readonly icon: IconName
  readonly role?: 'status' | 'alert'
  readonly children: preact.ComponentChildren
  /** The buttons. */
  readonly acts?: preact.ComponentChildren
}

/** A banner that is shown while its fact lasts. */
export const Banner = ({ look, icon, role = 'status', children, acts }: BannerProps) => (
  <div class={`banner ${look}`} role={role}>
    <Icon name={icon} />
    <span class="grow">{children}</span>
    {acts}
  </div>
)
