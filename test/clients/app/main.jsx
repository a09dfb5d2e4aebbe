// An app of React, as a frontend developer writes it: the tests press its buttons.
import { StrictMode, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { createSluice } from "sluice/client";
import { useJob, useUsage } from "sluice/react";

const { gateway, token } = Object.fromEntries(new URLSearchParams(location.search));
const sluice = createSluice({ url: gateway, token });
const flux = "black-forest-labs-flux-1-schnell";
const small = { width: 256, height: 256 };

function Picture({ model, first }) {
  const { run, cancel, state, job, error, chunks } = useJob(sluice, model);
  const { usage, refresh } = useUsage(sluice);
  useEffect(() => {
    if (first) run({ prompt: first });
  }, [first, run]);
  return (
    <section>
      <output>{state}</output>
      <p role="alert">{error?.message}</p>
      <p data-of="plan">{usage?.plan}</p>
      <p data-of="jobs">{usage?.jobs.map(({ status }) => status).join(" ")}</p>
      <p data-of="text">{chunks.map(({ text }) => text.join("")).join("")}</p>
      {job?.output.image_url && <img src={job.output.image_url} alt={job.id} />}
      <button type="button" onClick={() => run({ prompt: "a lighthouse", ...(model === flux && small) })}>
        Make
      </button>
      <button type="button" onClick={() => run({ prompt: "a [slow] lighthouse" })}>
        Make slowly
      </button>
      <button type="button" onClick={() => run({ prompt: "[fail]" })}>
        Fail
      </button>
      <button type="button" onClick={cancel}>
        Cancel
      </button>
      <button type="button" onClick={refresh}>
        Refresh
      </button>
    </section>
  );
}

function App() {
  const [isThere, setIsThere] = useState(true);
  const [model, setModel] = useState(flux);
  const [first, setFirst] = useState();
  return (
    <>
      <button type="button" onClick={() => setIsThere(!isThere)}>
        Show or hide
      </button>
      <button type="button" onClick={() => setModel(model === flux ? "gpt-oss-120b" : flux)}>
        Another model
      </button>
      <button type="button" onClick={() => setFirst("a [slow] first one")}>
        Make at once
      </button>
      {isThere && <Picture model={model} first={first} />}
    </>
  );
}

createRoot(document.querySelector("#app")).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
