// What the configuration of the tests tells the tests.
declare module "vitest" {
  interface ProvidedContext {
    plantedAdmissions: number;
  }
}

export const usualAdmissions = 15_000;
