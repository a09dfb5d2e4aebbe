// The name of an endpoint's queue. A queue belongs to an account, so no account sees the jobs of another.

export function queueName(account: string, endpoint: string): string {
  return `${account}/${endpoint}`;
}

/** The account and the endpoint that a queue's name says: no account has a slash in its name. */
export function readQueueName(name = ""): { account: string; endpoint: string } {
  const slash = name.indexOf("/");
  return { account: name.slice(0, Math.max(0, slash)), endpoint: name.slice(slash + 1) };
}
