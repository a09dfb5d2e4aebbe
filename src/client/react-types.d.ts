// The part of React that the hooks use. The types of React itself come with an app, and no type of it is in ours.
declare module "react" {
  export function useState<T>(initial: T): [T, (next: T | ((before: T) => T)) => void];
  export function useRef<T>(initial: T): { current: T };
  export function useEffect(effect: () => undefined | (() => void), dependencies: readonly unknown[]): void;
  export function useCallback<T>(callback: T, dependencies: readonly unknown[]): T;
}
