/** What the page may ask of the program that shows it. Each kind of host has one file; only that file knows it. */
export interface Host {
  /** The version of the program that shows the page. Rejects when the program does not answer. */
  appVersion(): Promise<string>;
}
