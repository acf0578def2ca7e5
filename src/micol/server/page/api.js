// The server's API; a refusal becomes an Error with the server's own words.

async function call(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The server cannot be reached.");
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.detail || `The server answered ${response.status}.`);
  return body;
}

const json = (method, content, token) => ({
  method,
  headers: {
    "Content-Type": "application/json",
    ...(token ? { Authorization: `Bearer ${token}` } : {}),
  },
  body: content === undefined ? undefined : JSON.stringify(content),
});

const query = (values) => new URLSearchParams(values).toString();
const id = encodeURIComponent;

export const model = () => call("/v1/model");
export const suggest = (body) => call("/v1/suggest", json("POST", body));
export const labels = (values) => call(`/v1/labels?${query(values)}`);
export const label = (name) => call(`/v1/labels/${id(name)}`);
export const addLabel = (label, token) => call("/v1/labels", json("POST", { labels: [label] }, token));
export const removeLabel = (name, token) => call(`/v1/labels/${id(name)}`, json("DELETE", undefined, token));
export const documents = (search) => call(`/v1/documents?${query({ search, limit: 12 })}`);
/** Whether the corpus has a document of that id; asked so that a no is no error. */
export const hasDocument = async (name) =>
  (await documents(name)).documents.some((document) => document.id === name);
export const document = (name) => call(`/v1/documents/${id(name)}`);
export const neighbours = (name, path) =>
  call(`/v1/documents/${id(name)}/neighbours?${query({ path, limit: 24 })}`);
