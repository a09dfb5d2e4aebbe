// Cloudflare's Turnstile, where the deployment asks visitors for it. Its script and frame are the one foreign host that
// the policy then allows.

const script = "https://challenges.cloudflare.com/turnstile/v0/api.js?render=explicit";

/** Written into the page by the build. */
export const siteKey = document.querySelector<HTMLMetaElement>("meta[name=turnstile]")?.content;

interface Turnstile {
  render(
    place: string,
    options: { sitekey: string; callback: (response: string) => void; "error-callback": () => void },
  ): string;
  remove(widget: string): void;
}

/** What the widget answers, once the visitor has passed. */
export async function passChallenge(): Promise<string> {
  const turnstile = await load();
  return new Promise((resolve, reject) => {
    const widget = turnstile.render("#turnstile", {
      sitekey: siteKey ?? "",
      callback: (response) => {
        resolve(response);
        turnstile.remove(widget);
      },
      "error-callback": () => reject(new Error("The check that you are a person did not work.")),
    });
  });
}

function load(): Promise<Turnstile> {
  return new Promise((resolve, reject) => {
    const element = Object.assign(document.createElement("script"), { src: script, async: true });
    element.onload = () => resolve((globalThis as unknown as { turnstile: Turnstile }).turnstile);
    element.onerror = () => reject(new Error("The check that you are a person cannot be loaded."));
    document.head.append(element);
  });
}
