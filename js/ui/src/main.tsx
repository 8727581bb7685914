/** The page of the node that served it. */

import { mount } from './app/mount';
import { BACKTEST, EXPLORE, HISTORY, QUERY, RECEIVERS, SILENCES, type View } from './app/views';
import { Home } from './pages/home/home';
import { HttpSource } from './source/http';
import { TokenKeeper } from './source/token';

// Home comes with the page: it is what most people open.
const HOME: View = { name: '', title: 'Home', component: Home };
const ALERTS: View = { name: 'alerts', title: 'Alerts', load: async () => (await import('./pages/alerts/alerts')).Alerts, below: [HISTORY, SILENCES, RECEIVERS, BACKTEST] };

const element = document.getElementById('app');
if (element !== null) {
  const tokens = { read: new TokenKeeper(location.pathname), admin: new TokenKeeper(location.pathname, 'admin') };
  mount(element, new HttpSource(tokens), [HOME, QUERY, ALERTS, EXPLORE], tokens);
}
