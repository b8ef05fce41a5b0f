// What the pages' own script does: sliders say their value, and follow one another; a file that
// is dropped is chosen, and its upload shows how far it is. Everything works without it.
"use strict";
document.documentElement.classList.add("js");

function say(slider) {
  const words = slider.dataset.labels.split(" ")[slider.value];
  slider.setAttribute("aria-valuetext", words);
  slider.nextElementSibling.textContent = words;
}

function sliders() {
  document.querySelectorAll("input[type=range][data-labels]").forEach(say);
}

document.addEventListener("input", (event) => {
  const slider = event.target;
  if (!slider.matches?.("input[type=range][data-labels]")) return;
  say(slider);
  const mine = slider.id === "exact" ? "exact" : "price";
  document.querySelector(`input[name=by][value=${mine}]`).checked = true;
});

// A new price is read aloud. The slider that was not dragged moves to where the offer puts it,
// unless it is dragged by now.
document.addEventListener("htmx:afterSwap", () => {
  const offer = document.getElementById("offer");
  if (!offer?.dataset.by) return;
  document.getElementById("spoken").textContent = offer.querySelector(".total").textContent;
  if (document.querySelector("input[name=by]:checked")?.value !== offer.dataset.by) return;
  const other = offer.dataset.by === "exact" ? "cost" : "exact";
  const slider = document.getElementById(other);
  if (slider) {
    slider.value = offer.dataset[other];
    say(slider);
  }
});

function uploads(form) {
  const input = form.querySelector("input[type=file]");
  const drop = form.querySelector(".drop");
  const bar = form.querySelector("progress");
  for (const name of ["dragover", "dragleave", "drop"]) {
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragover");
      if (name === "drop" && event.dataTransfer.files.length) input.files = event.dataTransfer.files;
    });
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    bar.hidden = false;
    request.upload.onprogress = (told) => { bar.value = 100 * told.loaded / told.total; };
    request.onerror = () => form.submit();
    request.onload = () => {
      if (request.responseURL !== form.action) { window.location.assign(request.responseURL); return; }
      const page = new DOMParser().parseFromString(request.responseText, "text/html");
      document.querySelector("main").replaceWith(page.querySelector("main"));
      document.querySelectorAll("form[data-upload]").forEach(uploads);
      document.querySelector("[role=alert]")?.scrollIntoView();
    };
    request.send(new FormData(form));
  });
}

// How long it is until the public time of an answer.
function count() {
  document.querySelectorAll("[data-until]").forEach((place) => {
    const left = Math.ceil(place.dataset.until - Date.now() / 1000);
    place.textContent = left > 0 ? `, in ${left} ${left === 1 ? "second" : "seconds"}` : "";
  });
}

sliders();
count();
setInterval(count, 500);
document.querySelectorAll("form[data-upload]").forEach(uploads);
