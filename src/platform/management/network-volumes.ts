// Network volumes: the routes.
import { answerList } from "./record-list.ts";
import { changeRoutes, resourceRoutes } from "./resource.ts";
import { newId } from "./rows.ts";
import { volumeCreateSchema, volumeSchema, volumeUpdateSchema } from "./volume.ts";

const volume = {
  name: "NetworkVolume",
  path: "/networkvolumes",
  id: "networkVolumeId",
  answer: volumeSchema,
} as const;

export const volumeRoutes = [
  ...resourceRoutes({
    ...volume,
    list: {
      summary: "The network volumes",
      answer: ({ records }) => answerList([], (after) => records().listVolumes(after)),
    },
    create: {
      summary: "Create a network volume",
      body: volumeCreateSchema,
      make: ({ records }, body) => records().createVolume({ id: newId(10), ...body }),
    },
    get: { summary: "A network volume", find: ({ records }, id) => records().findVolume(id) },
    remove: {
      summary: "Delete a network volume that nothing is attached to",
      errors: ["IN_USE"],
      act: ({ records }, id) => records().deleteVolume(id),
    },
  }),
  ...changeRoutes(volume, {
    summary: "Change a network volume",
    body: volumeUpdateSchema,
    act: ({ records }, id, change) => records().updateVolume(id, change),
  }),
];
