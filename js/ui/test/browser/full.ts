/** A node with something on every page, and its pages once they are drawn. */

import { after, before } from 'node:test';
import { fullLines, fullProgram } from './addresses';
import { open, type Tab, type TabOptions } from './browser';
import type { Program } from './program';
import { allForwarded, Receiver } from './receiver';
import { Site } from './serve';

/** The node, which runs while the tests of a file do. */
export class FullNode {
  readonly program: Program;
  #site: Site | undefined;

  private constructor(program: Program) {
    this.program = program;
  }

  static async make(): Promise<FullNode> {
    const receiver = await new Receiver().start();
    const node = new FullNode(fullProgram([], receiver.url));
    before(async () => {
      await node.program.start();
      await node.program.import(fullLines());
      await allForwarded(node.program);
      node.#site = await new Site(node.program.url).start();
    });
    after(async () => {
      node.#site?.close();
      await node.program.remove();
      receiver.close();
    });
    return node;
  }

  /** Where a browser finds it. */
  get url(): string {
    return this.#site!.url;
  }

  /** Opens an address, and waits until it shows a text and loads nothing any more. */
  async open(address: string, text: string | RegExp, options: TabOptions): Promise<Tab> {
    const tab = await open(this.url + address, options);
    await tab.page.getByText(text).first().waitFor();
    await tab.page.waitForFunction(() => document.querySelector('.loading') === null);
    await tab.page.waitForLoadState('networkidle');
    return tab;
  }
}
