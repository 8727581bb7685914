/** The files of what a person picked or dropped, with their paths. */

/** A file, and its path from what was picked. */
export interface Picked {
  path: string;
  file: File;
}

/** Files of an input: of one with `webkitdirectory` with their paths in the directory. */
export function filesOf(list: FileList): Picked[] {
  return [...list].map((file) => ({ path: file.webkitRelativePath === '' ? file.name : file.webkitRelativePath, file }));
}

/**
 * Files and directories that were dropped. To be called within the event, and then waited for.
 * Chromium refuses to read entries on a page from `file://`, but not handles; over plain HTTP, and
 * in other browsers, there are entries only.
 */
export async function droppedFiles(transfer: DataTransfer): Promise<Picked[]> {
  const items = [...transfer.items].filter(({ kind }) => kind === 'file') as HandleItem[];
  const all = items.map((item) => {
    if (item.getAsFileSystemHandle !== undefined) return item.getAsFileSystemHandle().then((handle) => (handle === null ? [] : ofHandle(handle, '')));
    const entry = item.webkitGetAsEntry();
    return entry === null ? [] : ofEntry(entry);
  });
  return (await Promise.all(all)).flat();
}

type Handle = FileSystemFileHandle | (FileSystemDirectoryHandle & { values(): AsyncIterable<Handle> });
type HandleItem = DataTransferItem & { getAsFileSystemHandle?: () => Promise<Handle | null> };

async function ofHandle(handle: Handle, parent: string): Promise<Picked[]> {
  const path = `${parent}${handle.name}`;
  if (handle.kind === 'file') return [{ path, file: await handle.getFile() }];
  const all: Picked[] = [];
  for await (const below of handle.values()) all.push(...(await ofHandle(below, `${path}/`)));
  return all;
}

async function ofEntry(entry: FileSystemEntry): Promise<Picked[]> {
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    return [{ path: entry.fullPath, file }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const all: Picked[] = [];
  for (;;) {
    // A browser gives some entries at a time, and none at the end.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return all;
    for (const below of some) all.push(...(await ofEntry(below)));
  }
}
