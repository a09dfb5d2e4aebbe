// Templates: the routes.
import { answerList } from "./record-list.ts";
import { changeRoutes, resourceRoutes } from "./resource.ts";
import { absent, newId } from "./rows.ts";
import { officialTemplate, officialTemplates } from "./template.ts";
import {
  type Template,
  type TemplateInput,
  templateCreateSchema,
  templateIncludeSchema,
  templateSchema,
  templateUpdateSchema,
} from "./template-input.ts";

function newTemplate(input: TemplateInput): Template {
  const { containerRegistryAuthId, ...others } = input;
  const fresh = { ...others, id: newId(), isRunpod: false, earned: 0, runtimeInMin: 0 };
  return containerRegistryAuthId ? { ...fresh, containerRegistryAuthId } : fresh;
}

const template = { name: "Template", path: "/templates", id: "templateId", answer: templateSchema } as const;

export const templateRoutes = [
  ...resourceRoutes({
    ...template,
    list: {
      summary: "The templates",
      query: templateIncludeSchema,
      answer: ({ account, records, catalogue }, include) => {
        const own = (after: number) => records().listTemplates(include.includeEndpointBoundTemplates, after);
        const others = (after: number) => catalogue().listPublicTemplates(account, after);
        const official = include.includeRunpodTemplates ? officialTemplates : [];
        return answerList(official, own, ...(include.includePublicTemplates ? [others] : []));
      },
    },
    create: {
      summary: "Create a template",
      body: templateCreateSchema,
      errors: ["NAME_TAKEN"],
      make: ({ records }, body) => records().createTemplate(newTemplate(body)),
    },
    get: {
      summary: "A template",
      query: templateIncludeSchema,
      find: async ({ records, catalogue }, id, include) => {
        const official = include.includeRunpodTemplates ? officialTemplate(id) : undefined;
        const own = official ?? (await records().findTemplate(id, include.includeEndpointBoundTemplates));
        const shared = own ?? (include.includePublicTemplates ? await catalogue().findPublicTemplate(id) : undefined);
        return shared ?? absent("template");
      },
    },
    remove: {
      summary: "Delete a template that nothing uses",
      errors: ["IN_USE"],
      act: ({ records }, id) => records().deleteTemplate(id),
    },
  }),
  ...changeRoutes(template, {
    summary: "Change a template",
    body: templateUpdateSchema,
    errors: ["NAME_TAKEN"],
    act: ({ records }, id, change) => records().updateTemplate(id, change),
  }),
];
