/** Bodies of answers, read within a bound. */

import { ApiError } from './source';

/** Bytes of an answer that a page takes, after decompression. Some 400,000 points of a graph. */
export const BODY_BYTES_MAX = 64 * 1024 * 1024;

/** Reads a body as text. Ends the request if the body is larger than the bound. */
export async function boundedText(response: Response, bytesMax = BODY_BYTES_MAX): Promise<string> {
  if (response.body === null) return '';
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  const texts: string[] = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.length;
    if (bytes > bytesMax) {
      await reader.cancel();
      const mebibytes = Math.round(bytesMax / 2 ** 20);
      throw new ApiError(
        'too_large',
        `the answer is larger than the ${mebibytes} MiB that a page takes: ask for fewer series, a shorter range or a longer step`,
      );
    }
    texts.push(decoder.decode(value, { stream: true }));
  }
  texts.push(decoder.decode());
  return texts.join('');
}
