// `/admin/models`: the operator switches a model off and on, or opens an endpoint beside the catalog.
import * as z from "zod";
import { Problem } from "../../errors.ts";
import { findModel, models } from "../../models/index.ts";
import type { Call } from "../call.ts";
import { gatewayRoute } from "../gateway-route.ts";
import { askControl, readControlAnew } from "../operator-settings/control-reader.ts";
import type { ModelSwitch } from "../operator-settings/control-view.ts";
import { unknownName } from "../operator-settings/known-names.ts";
import { modelNameSchema, usdSchema } from "../operator-settings/rules.ts";

const modelParam = z.object({ model: modelNameSchema });

export const switchSchema = z
  .strictObject({
    enabled: z.boolean().default(true),
    passthrough: z.boolean().default(false).describe("Opens an endpoint that the catalog does not know."),
    maxUsd: usdSchema.optional().describe("What one request of a passthrough is reserved at."),
  })
  .refine(({ passthrough, maxUsd }) => !passthrough || maxUsd !== undefined, {
    path: ["maxUsd"],
    error: "a passthrough needs a price",
  })
  .meta({ id: "ModelSwitch" });
const modelAnswerSchema = switchSchema.extend({ model: z.string() }).meta({ id: "ModelSwitchOf" });

const switchesSchema = z.object({ models: z.array(modelAnswerSchema) });
const path = "/admin/models/:model";
const onModel = { access: "operator", params: modelParam, answer: modelAnswerSchema } as const;
const errors = ["UNAUTHORIZED", "CONTROL_UNAVAILABLE"] as const;
const all = { access: "operator", path: "/admin/models", answer: switchesSchema, errors } as const;

/** They stand behind `operatorOnly`. */
export const modelRoutes = [
  gatewayRoute({ ...all, method: "get", summary: "How each model is switched" }, [], async (call) => {
    const switches = await switchesOf(call);
    return Response.json({ models: [...switches].map(([model, value]) => ({ model, ...value })) });
  }),
  gatewayRoute(
    { ...onModel, method: "get", path, summary: "How a model is switched", errors: [...errors, "MODEL_NOT_FOUND"] },
    [],
    async (call, { params: { model } }) => {
      const switches = await switchesOf(call);
      const found = switches.get(model);
      if (!found) throw new Problem("MODEL_NOT_FOUND", unknownName("model", model, switches.keys()));
      return Response.json({ model, ...found });
    },
  ),
  gatewayRoute(
    {
      ...onModel,
      method: "put",
      path,
      summary: "Switch a model on or off, or open an endpoint",
      json: switchSchema,
      errors,
    },
    [],
    async ({ env }, { params: { model }, json: value }) => {
      const isNew = !findModel(model) && !(await askControl(env, (control) => control.model(model)));
      if (isNew && !value.passthrough) throw new Problem("INVALID_REQUEST", unknownModel(model));
      await askControl(env, (control) => control.setModel(model, value));
      return Response.json({ model, ...value });
    },
  ),
];

/** A misspelt one would stay on. */
function unknownModel(model: string): string {
  const known = models.map(({ id }) => id);
  return `${unknownName("model", model, known)}; "passthrough" and "maxUsd" open another`;
}

/** The catalog's models, and the endpoints that the operator opened. */
async function switchesOf(call: Call): Promise<Map<string, ModelSwitch>> {
  const byDefault: ModelSwitch = { enabled: true, passthrough: false };
  return new Map([...models.map(({ id }) => [id, byDefault] as const), ...(await readControlAnew(call)).models]);
}
