export default { build: { rollupOptions: { input: ["index.html", "docs.html"] } } };
