/** What the worker runs that {@link openInWorker} starts. */

import { open } from '../open.js';
import { serve, type Port } from './serve.js';

serve(globalThis as unknown as Port, open);
