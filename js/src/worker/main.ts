/** What the worker runs that {@link openInWorker} starts. */

import { serve, type Port } from './serve.js';

serve(globalThis as unknown as Port);
