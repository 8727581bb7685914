/** What a person chose, kept in the browser where it allows that. */

/** Reads a choice. */
export function readSetting(name: string): string | undefined {
  try {
    return localStorage.getItem(`tidepool.${name}`) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Keeps a choice. */
export function writeSetting(name: string, value: string): void {
  try {
    localStorage.setItem(`tidepool.${name}`, value);
  } catch {
    // Without storage, or when it is full, a choice lasts until the page is loaded again.
  }
}
