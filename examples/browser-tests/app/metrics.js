// What the shop measures of itself. Tests read it with `expectMetric`; an application that ships
// would record in tests only, and leave this module out of its bundle otherwise.

import { recordMetrics } from '@tidepool/engine/testing';

export const metrics = await recordMetrics();
