/** The page of the node that served it, or a report that it saved. */

import { mount } from './app/mount';
import { reportOf } from './pages/report/data';
import { showReport } from './pages/report/show';
import { HttpSource } from './source/http';
import { TokenKeeper } from './source/token';

const element = document.getElementById('app');
const report = reportOf(document);
if (element !== null && report !== undefined) {
  showReport(element, report);
} else if (element !== null) {
  const tokens = new TokenKeeper(location.pathname);
  mount(element, new HttpSource(tokens), tokens);
}
