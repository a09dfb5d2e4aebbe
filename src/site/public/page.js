// The page at `/`: a prompt, a model and the picture that it makes, by the API that every app uses.
const find = (selector) => document.querySelector(selector);
const { prompt, model, make } = find("form").elements;
const [status, figure, picture] = [find("[role=status]"), find("figure"), find("img")];
const cheapest = "black-forest-labs-flux-1-schnell";

/** What the gateway answers; its refusals are thrown, in its own words. */
async function call(path, init) {
  const response = await fetch(path, init).catch(() => {
    throw new Error("The gateway cannot be reached.");
  });
  const body = await response.json().catch(() => ({ detail: `The gateway answered ${response.status}.` }));
  if (!response.ok) throw Object.assign(new Error(body.detail), { status: response.status });
  return { body, cost: response.headers.get("X-Cost") };
}

/** As an anonymous visitor, whose session lasts an hour and is begun anew when it has ended. */
async function callAsVisitor(path, init) {
  const kept = localStorage.token;
  localStorage.token ??= (await call("/sessions", { method: "POST" })).body.token;
  const headers = { Authorization: `Bearer ${localStorage.token}` };
  return call(path, { ...init, headers }).catch((error) => {
    if (error.status !== 401 || !kept) throw error;
    localStorage.removeItem("token");
    return callAsVisitor(path, init);
  });
}

/** With a seed, the same call gives the same picture again, at no cost. What is shown is always of the last call. */
async function makePicture() {
  figure.hidden = true;
  const path = `/v2/${model.value}`;
  const seed = Math.floor(Math.random() * 2 ** 31);
  const body = JSON.stringify({ input: { prompt: prompt.value, seed } });
  let { body: job, cost } = await callAsVisitor(`${path}/runsync`, { method: "POST", body });
  while (job.status.startsWith("IN_")) ({ body: job, cost } = await callAsVisitor(`${path}/status-sync/${job.id}`));
  if (job.status !== "COMPLETED") throw new Error(`The job is ${job.status}: ${job.error ?? "no reason was given"}`);
  picture.src = job.output.image_url;
  picture.alt = prompt.value;
  await picture.decode();
  find("figcaption").textContent = cost === null ? "What it cost is not known." : `It cost ${cost} USD.`;
  find("#curl").value = `curl ${location.origin}${path}/runsync \\
  -H "Authorization: Bearer ${localStorage.token}" \\
  -d '${body.replaceAll("'", "'\\''")}'`;
  figure.hidden = false;
}

/** Says what goes on, and what went wrong. */
async function attempt(doing, work) {
  make.disabled = true;
  status.textContent = doing;
  status.classList.remove("error");
  try {
    await work();
    status.textContent = "";
  } catch (error) {
    status.textContent = error.message;
    status.classList.add("error");
  }
  make.disabled = model.length === 0;
}

find("form").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt("Making the picture …", makePicture);
});

attempt("Looking for models …", async () => {
  const { models } = (await call("/models")).body;
  const images = models.filter(({ kind }) => kind === "image");
  model.replaceChildren(...images.map(({ id, title, price }) => new Option(`${title}, ${price}`, id)));
  model.value = cheapest;
});
