export function checkWebhookTarget(_url: string, _hosts: readonly string[]): string | undefined {
  return undefined;
}
