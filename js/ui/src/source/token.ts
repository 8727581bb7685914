/** The bearer tokens of this tab. Several requests that are refused at once ask for one once. */

/** What a token is for: a node has other ones for changes than for reading. */
export type Purpose = 'read' | 'admin';

/** Those of a node. */
export type Tokens = Record<Purpose, TokenKeeper>;

/** Keeps a token in the session's storage, and asks for it. */
export class TokenKeeper {
  readonly purpose: Purpose;
  readonly #key: string;
  #token: string | undefined;
  /**
   * Whether the question was declined: pages that read by themselves do not put it again until the
   * page is loaded again.
   */
  #isDeclined = false;
  #asked: { promise: Promise<boolean>; answer: (given: boolean) => void } | undefined;
  #listeners = new Set<() => void>();

  /** @param scope what tells this node from others of the same origin, such as the page's path */
  constructor(scope: string, purpose: Purpose = 'read') {
    this.purpose = purpose;
    this.#key = `tidepool.token ${purpose === 'read' ? '' : `${purpose} `}${scope}`;
    this.#token = read(this.#key);
  }

  get token(): string | undefined {
    return this.#token;
  }

  /** Whether a request waits for a token. */
  get isAsking(): boolean {
    return this.#asked !== undefined;
  }

  /** Waits for another token than the one that was refused; false if there is none to be had. */
  ask(refused: string | undefined): Promise<boolean> {
    if (this.#token !== refused) return Promise.resolve(true);
    if (this.#isDeclined) return Promise.resolve(false);
    if (this.#asked === undefined) {
      let answer: (given: boolean) => void = () => {};
      const promise = new Promise<boolean>((resolve) => (answer = resolve));
      this.#asked = { promise, answer };
      this.#tell();
    }
    return this.#asked.promise;
  }

  /** Answers who asked; nothing means that there will be no token. */
  give(token: string | undefined): void {
    // A change is wanted by a person, who may want it again.
    this.#isDeclined = token === undefined && this.purpose === 'read';
    if (token !== undefined) {
      this.#token = token;
      write(this.#key, token);
    }
    this.#asked?.answer(token !== undefined);
    this.#asked = undefined;
    this.#tell();
  }

  /** Calls the listener when a request begins or ceases to wait. Gives what ends that. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}

// A browser may forbid storage: then the token lasts until the page is loaded again.
function read(key: string): string | undefined {
  try {
    return sessionStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}

function write(key: string, token: string): void {
  try {
    sessionStorage.setItem(key, token);
  } catch {
    // As above.
  }
}
