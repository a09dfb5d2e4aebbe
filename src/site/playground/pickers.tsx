// The models, by kind, with their prices: one to run, and one beside it.
import type { ListedModel } from "../../client/index.ts";
import { Choices, Select } from "../controls.tsx";
import type { FormState } from "./form-state.ts";
import { fieldsOf } from "./schema.ts";

const kinds = { image: "Picture", "image-edit": "Edit", video: "Film", speech: "Speech", text: "Text" };

type Props = Readonly<{ models: readonly ListedModel[]; model: ListedModel; choose: (id: string) => void }>;

const optionOf = ({ id, title, price }: ListedModel) => [id, `${title} · ${price}`] as const;

const needsFile = ({ input }: ListedModel) =>
  fieldsOf(input).some(({ type, isRequired }) => type === "media" && isRequired);

/** The cheapest that words are enough for, where there is one. */
const easiest = (models: readonly ListedModel[]) =>
  models.toSorted((a, b) => Number(needsFile(a)) - Number(needsFile(b)) || a.pricing.maxUsd - b.pricing.maxUsd)[0];

/** `lastOf` a kind is the model that was chosen of it before. */
export function modelOfKind(models: Props["models"], kind: string | null, lastOf: FormState["lastOf"]) {
  const ofKind = models.filter((one) => one.kind === kind);
  return ofKind.find(({ id }) => id === lastOf[`${kind}`]) ?? easiest(ofKind);
}

export function ModelPicker({ models, model, lastOf, choose }: Props & Pick<FormState, "lastOf">) {
  const ofKind = models.filter(({ kind }) => kind === model.kind);
  const chooseKind = (kind: string) => choose((modelOfKind(models, kind, lastOf) ?? model).id);
  return (
    <>
      <Choices label="Kind" options={Object.entries(kinds)} chosen={model.kind} choose={chooseKind} />
      <div class="field">
        <label for="model">Model</label>
        <Select id="model" options={ofKind.map(optionOf)} chosen={model.id} choose={choose} />
      </div>
    </>
  );
}

export function RivalPicker({ models, model, rival, choose }: Props & { readonly rival: ListedModel | undefined }) {
  const others = models.filter(({ id, kind }) => kind === model.kind && id !== model.id);
  return (
    <details open={rival !== undefined}>
      <summary>Compare with another model</summary>
      <Select
        id="rival"
        aria-label="The model beside it"
        options={[["", "None"], ...others.map(optionOf)]}
        chosen={rival?.id ?? ""}
        choose={choose}
      />
    </details>
  );
}
