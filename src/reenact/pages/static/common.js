// What the scripts of all pages of the viewer use.
export const $ = (id) => document.getElementById(id);

export const get = async (path, signal) => {
  try {
    return await fetch(path, { signal });
  } catch (why) {
    if (why.name !== "AbortError") note("The viewer has ended. Start `reenact view` again.");
    throw why;
  }
};

let noteTimer;
export const note = (text) => {
  const place = $("note");
  if (!place) return;
  place.textContent = text;
  place.hidden = !text;
  clearTimeout(noteTimer);
  noteTimer = setTimeout(() => { place.hidden = true; }, 4000);
};

export const press = (button, is) => button.setAttribute("aria-pressed", String(is));
