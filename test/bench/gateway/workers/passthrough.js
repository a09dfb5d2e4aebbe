// The least that a gateway can do: the request as it is, to another place.
export default {
  fetch(request, env) {
    const { pathname, search } = new URL(request.url);
    return fetch(env.UPSTREAM + pathname + search, request);
  },
};
