// temp
export async function render(format: string, _request: object) {
  return { bytes: new Uint8Array([1, 2, 3]), contentType: format === "wav" ? "audio/wav" : `image/${format}` };
}
