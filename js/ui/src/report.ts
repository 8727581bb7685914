/** The script of a report that the page saved. */

import { reportOf } from './pages/report/data';
import { showReport } from './pages/report/show';

const element = document.getElementById('app');
const report = reportOf(document);
if (element !== null && report !== undefined) showReport(element, report);
