/** The page of the node that served it. */

import { mount } from './app/mount';
import { HttpSource } from './source/http';
import { TokenKeeper } from './source/token';

const element = document.getElementById('app');
if (element !== null) {
  const tokens = new TokenKeeper(location.pathname);
  mount(element, new HttpSource(tokens), tokens);
}
