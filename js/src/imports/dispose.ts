/**
 * The name of the method by which generated code drops a resource, also where it is not built in.
 */
export const dispose: typeof Symbol.dispose =
  Symbol.dispose ?? (Symbol.for('dispose') as typeof Symbol.dispose);
