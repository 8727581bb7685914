/** What a person chose, kept in the browser: for good, or until the tab is closed. */

/** Reads a choice. */
export function readSetting(name: string): string | undefined {
  return read(() => localStorage, name);
}

/** Keeps a choice. */
export function writeSetting(name: string, value: string): void {
  write(() => localStorage, name, value);
}

/** Reads what this tab keeps. */
export function readOfTab(name: string): string | undefined {
  return read(() => sessionStorage, name);
}

/** Keeps something until the tab is closed. */
export function writeOfTab(name: string, value: string): void {
  write(() => sessionStorage, name, value);
}

// Where storage is forbidden, reaching for it throws.
function read(storage: () => Storage, name: string): string | undefined {
  try {
    return storage().getItem(`tidepool.${name}`) ?? undefined;
  } catch {
    return undefined;
  }
}

function write(storage: () => Storage, name: string, value: string): void {
  try {
    storage().setItem(`tidepool.${name}`, value);
  } catch {
    // Without storage, or when it is full, it lasts until the page is loaded again.
  }
}
