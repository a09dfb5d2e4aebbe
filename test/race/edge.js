// The edge in front of the counter: calls come in at each of its places in turn.
let calls = 0;

export default {
  fetch(request, env) {
    const places = Object.values(env);
    return places[calls++ % places.length].fetch(request);
  },
};
