import type { Model } from "./model.ts";
export const models: readonly Model[] = [];
export const findModel = (id: string) => models.find((m) => m.id === id);
export const describeModel = (model: Model) => ({ ...model, input: {} });
