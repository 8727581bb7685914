/** What the worker runs that {@link openInWorker} starts. */

import type { Port } from '../../worker/serve.js';
import { serveWithQueries } from './serve.js';

serveWithQueries(globalThis as unknown as Port);
