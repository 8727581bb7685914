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

/** Files and directories that were dropped. To be called within the event, and then waited for. */
export async function droppedFiles(transfer: DataTransfer): Promise<Picked[]> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  return (await Promise.all(entries.map(filesBelow))).flat();
}

async function filesBelow(entry: FileSystemEntry): Promise<Picked[]> {
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
    for (const below of some) all.push(...(await filesBelow(below)));
  }
}
