// The settings that the tests run with: what `npm start` writes for a newcomer, with secrets that are known.

export const testSettings = {
  LOCAL: "true",
  // The limits of a deployment, unless a test asks for a developer's.
  SESSION_PLAN: "anonymous",
  SIGNING_SECRET: "signing-secret-of-the-tests-0123456789",
  ADMIN_TOKEN: "admin-token-of-the-tests-0123456789abc",
  APP_SECRET: "app-secret-of-the-tests-0123456789abcd",
  PLATFORM_API_KEY: "platform-key-of-the-tests-0123456789ab",
  UPSTREAM_API_KEY: "none",
  TURNSTILE_SECRET: "none",
  SAMPLE_DELAY_MS: "0",
};

/** The same, anywhere but on a developer's machine. */
export const deployedSettings = { ...testSettings, LOCAL: "" };
