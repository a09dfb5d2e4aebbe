// Stands in for a rate limit binding: as many calls a key in each period of the clock.
export default function rate({ rule }) {
  const counts = new Map();
  let window = 0;
  return {
    async limit({ key }) {
      const now = Math.floor(Date.now() / (rule.period * 1000));
      if (now !== window) {
        counts.clear();
        window = now;
      }
      const count = (counts.get(key) ?? 0) + 1;
      counts.set(key, count);
      return { success: count <= rule.limit };
    },
  };
}
