// Asks lsmith's module, which takes and gives JSON as UTF-8 in its memory.
// Returns a function from a request to an answer: {page} or {error}.
function lsmithOf(module) {
  const lsmith = new WebAssembly.Instance(module, {}).exports;
  return (request) => {
    const text = new TextEncoder().encode(JSON.stringify(request));
    // Calls may grow the memory, so its buffer is asked for after each.
    const room = lsmith.lsmith_request(text.length);
    new Uint8Array(lsmith.memory.buffer, room, text.length).set(text);
    const length = lsmith.lsmith_page();
    const answer = lsmith.lsmith_answer();
    const bytes = new Uint8Array(lsmith.memory.buffer, answer, length);
    return JSON.parse(new TextDecoder().decode(bytes));
  };
}
