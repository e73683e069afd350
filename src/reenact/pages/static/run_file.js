// A large run as one file: a turn is unpacked when it is opened. Its HTML was escaped when the file was written.
const unpacked = async (id) => {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (sign) => sign.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
};

const fill = async (turn) => {
  turn.filled ||= unpacked(turn.dataset.block).then((html) => { turn.lastElementChild.innerHTML = html; });
  await turn.filled;
};

let places; // the block of each event
const go = async () => {
  const at = decodeURIComponent(location.hash.slice(4));
  if (!location.hash.startsWith("#/e/")) return;
  places ||= unpacked("places").then(JSON.parse);
  const turn = document.querySelector(`[data-block="block-${Number((await places)[at])}"]`);
  if (!turn) return;
  turn.open = true;
  await fill(turn);
  document.getElementById(`/e/${at}`)?.scrollIntoView();
};

document.addEventListener("toggle", (event) => { if (event.target.matches(".turn") && event.target.open) fill(event.target); }, true);
addEventListener("hashchange", go);
const first = document.querySelector(".turn[open]");
if (first) fill(first);
go();
