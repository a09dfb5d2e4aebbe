// Cloudflare's Turnstile, where the deployment asks visitors for it. Its script and frame are the one foreign host that
// the policy then allows.

const script = "https://challenges.cloudflare.com/turnstile/v0/api.js?render=explicit";

/** Written into the page by the build. */
export const siteKey = document.querySelector<HTMLMetaElement>("meta[name=turnstile]")?.content;

declare const turnstile: {
  render(place: string, options: Readonly<Record<string, unknown>>): string;
  remove(widget: string): void;
};

/** What the widget answers, once the visitor has passed. */
export async function passChallenge(): Promise<string> {
  await load();
  return new Promise((resolve, reject) => {
    const widget = turnstile.render("#turnstile", {
      sitekey: siteKey,
      callback: (response: string) => {
        turnstile.remove(widget);
        resolve(response);
      },
      "error-callback": () => {
        turnstile.remove(widget);
        reject(new Error("The check that you are a person did not work."));
        // The widget would tell the console, too.
        return true;
      },
    });
  });
}

/** Its script is fetched once, and again where that failed. */
let loaded: Promise<void> | undefined;

function load(): Promise<void> {
  loaded ??= new Promise<void>((resolve, reject) => {
    const element = Object.assign(document.createElement("script"), { src: script, async: true });
    element.onload = () => resolve();
    element.onerror = () => {
      loaded = undefined;
      element.remove();
      reject(new Error("The check that you are a person cannot be loaded."));
    };
    document.head.append(element);
  });
  return loaded;
}
