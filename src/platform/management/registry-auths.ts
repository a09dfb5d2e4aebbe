// Container registry auths: what is accepted, the rules, the routes. A password is sealed before it is kept.
import { Hono } from "hono";
import * as z from "zod";
import type { Operation } from "../../contract/operation.ts";
import { accepted } from "../answers.ts";
import type { Refusal } from "../queue/views.ts";
import * as fields from "./fields.ts";
import { answerList, found, idIn, listed, type ManagementEnv, readBody, written } from "./resource.ts";
import { absent, inUse, nameTaken, newId, type Page, Rows } from "./rows.ts";
import { seal } from "./sealing.ts";

const secret = z.string().min(1).max(65_536);
const createSchema = z
  .object({ name: fields.name, username: z.string().min(1).max(1024), password: secret })
  .meta({ id: "ContainerRegistryAuthCreateInput" });
const authSchema = z.object({ id: z.string(), name: z.string() }).meta({ id: "ContainerRegistryAuth" });
export type RegistryAuth = z.output<typeof authSchema>;

export class RegistryAuthBook {
  readonly #sql: SqlStorage;
  readonly #rows: Rows<RegistryAuth>;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    this.#rows = new Rows(sql, "registry_auths");
  }

  find(id: string): RegistryAuth | Refusal {
    return this.#rows.find(id) ?? absent("container registry auth");
  }

  page(after: number): Page {
    return this.#rows.page("1", [], after);
  }

  create(auth: RegistryAuth, sealed: Uint8Array): RegistryAuth | Refusal {
    if (this.#rows.has("name = ?", auth.name)) return nameTaken(auth.name);
    this.#rows.add(auth, { sealed: sealed.slice().buffer });
    return auth;
  }

  remove(id: string): { removed: true } | Refusal {
    if (!this.#rows.find(id)) return absent("container registry auth");
    const used = ["templates", "pods"].some((table) =>
      new Rows(this.#sql, table).has("containerRegistryAuthId = ?", id),
    );
    if (used) return inUse("container registry auth", "templates or Pods");
    this.#rows.remove(id);
    return { removed: true };
  }
}

/** Where a sealed password belongs: it opens for no other account or auth. */
export function sealLabel(account: string, id: string): string {
  return `${account}/${id}`;
}

export const registryAuths = new Hono<ManagementEnv>()
  .get("/", (c) => {
    const books = c.get("books");
    return answerList([], (after) => books().listRegistryAuths(after));
  })
  .post("/", async (c) => {
    const { name, username, password } = await readBody(c, createSchema);
    const auth = { id: newId(), name };
    const [secret = ""] = c.get("config").signingSecrets;
    const credentials = JSON.stringify({ username, password });
    const sealed = await seal(credentials, sealLabel(c.get("account"), auth.id), secret);
    return c.json(accepted(await c.get("books")().createRegistryAuth(auth, sealed)));
  })
  .get("/:containerRegistryAuthId", async (c) => {
    return c.json(accepted(await c.get("books")().findRegistryAuth(idIn(c, "containerRegistryAuthId"))));
  })
  .delete("/:containerRegistryAuthId", async (c) => {
    accepted(await c.get("books")().deleteRegistryAuth(idIn(c, "containerRegistryAuthId")));
    return c.body(null, 204);
  });

const one = { access: "platform", answer: authSchema } as const;
const all = { path: "/containerregistryauth" } as const;
const byId = { path: `${all.path}/{containerRegistryAuthId}` } as const;

export const registryAuthOperations: readonly Operation[] = [
  {
    ...one,
    ...all,
    id: "ListContainerRegistryAuths",
    method: "get",
    summary: "The container registry auths",
    answer: z.array(authSchema),
    errors: listed,
  },
  {
    ...one,
    ...all,
    id: "CreateContainerRegistryAuth",
    method: "post",
    body: createSchema,
    summary: "Keep credentials: the password never comes back",
    errors: [...written, "NAME_TAKEN"],
  },
  { ...one, ...byId, id: "GetContainerRegistryAuth", method: "get", summary: "A registry auth", errors: found },
  {
    ...byId,
    access: "platform",
    id: "DeleteContainerRegistryAuth",
    method: "delete",
    status: 204,
    summary: "Delete a registry auth that nothing uses",
    errors: [...found, "IN_USE"],
  },
];
