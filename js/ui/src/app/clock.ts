/** The present for texts such as *4 s ago*. */

import { useEffect, useState } from 'preact/hooks';

/** Milliseconds since the epoch, changing at this interval while the tab is visible. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) setNow(Date.now());
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
