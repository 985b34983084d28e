/** Files of agents, as they are given to the user. Pure. */

export interface SavedFile {
  /** Safe, without a path. */
  name: string;
  /** The agent's word for what it is. */
  mediaType: string;
  content: () => Uint8Array<ArrayBuffer>;
}

/** What desktops open with something that runs what is in it: pages, scripts, programs, installers, shortcuts, macros. */
const ACTIVE =
  /\.(?:html?|xhtml|mht(?:ml)?|svgz?|xml|xsl|js[ex]?|mjs|vb[es]?|ws[fh]?|hta|sh|bash|zsh|fish|command|ps1|bat|cmd|com|exe|scr|msi|msix|appx|jar|apk|deb|rpm|run|bin|appimage|app|dmg|pkg|desktop|lnk|url|webloc|reg|py[wc]?|pl|rb|php|(?:doc|xls|ppt)m|iqy|slk)$/i;
const ACTIVE_TYPE = /html|svg|xml|script|x-sh|executable|msdownload|x-desktop|java-archive/i;

/** Whether opening the file may do more than show it. */
export function isActive(file: { name: string; mediaType: string }): boolean {
  return ACTIVE.test(file.name) || ACTIVE_TYPE.test(file.mediaType);
}
