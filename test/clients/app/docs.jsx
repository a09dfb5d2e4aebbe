// What docs/client.md and the README show of React, on a page.
import { createRoot } from "react-dom/client";
import { createSluice } from "sluice/client";
import { Picture as First } from "./first.jsx";
import { Picture } from "./picture.jsx";

const sluice = createSluice({ url: new URLSearchParams(location.search).get("gateway") });
createRoot(document.querySelector("#app")).render(
  <>
    <Picture />
    <section>
      <First sluice={sluice} />
    </section>
  </>,
);
