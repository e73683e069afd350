// The page of all runs.
import { $, get } from "/static/common.js";

new EventSource("/live").onmessage = async () => {
  const answer = await get(`/runs${location.search}`);
  if (answer.ok) $("runs").outerHTML = await answer.text();
};
