/** Whether the page is dark now: what is painted on a canvas follows no style sheet by itself. */

import { useEffect, useState } from 'preact/hooks';
import { useApp } from '../app/context';

/** The colours that are in force. */
export function useScheme(): 'light' | 'dark' {
  const { theme } = useApp();
  const [prefersDark, setPrefersDark] = useState(() => matchMedia(QUERY).matches);
  useEffect(() => {
    const list = matchMedia(QUERY);
    const follow = (): void => setPrefersDark(list.matches);
    list.addEventListener('change', follow);
    return () => list.removeEventListener('change', follow);
  }, []);
  return theme === 'auto' ? (prefersDark ? 'dark' : 'light') : theme;
}

const QUERY = '(prefers-color-scheme: dark)';
