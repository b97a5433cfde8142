"use strict";
// <input data-names="address"> suggests names that contain the typed text. A <textarea> with one name
// per line gets a search field. Enter, or a click on a suggestion, adds a line.
const DELAY = 150;

const offer = (input, address) => {
    const list = document.createElement("datalist");
    list.id = `${input.id}_names`;
    input.after(list);
    input.setAttribute("list", list.id);
    input.autocomplete = "off";
    let waiting;
    let asked = "";
    const ask = async () => {
        asked = input.value.trim();
        const answer = await fetch(`${address}?${new URLSearchParams({ q: asked })}`);
        if (!answer.ok || input.value.trim() !== asked) {
            return;
        }
        const { names } = await answer.json();
        list.replaceChildren(...names.map(({ value, label }) => new Option(label, value)));
    };
    input.addEventListener("input", () => {
        clearTimeout(waiting);
        if (input.value.trim()) {
            waiting = setTimeout(ask, DELAY);
        }
    });
};

const offerForLines = (area, address) => {
    const input = document.createElement("input");
    input.type = "text";
    input.id = `${area.id}_finder`;
    input.className = "vTextField";
    input.placeholder = "Find by name";
    input.setAttribute("aria-label", `Find and add: ${area.labels[0].textContent.replace(":", "")}`);
    const said = document.createElement("span");
    said.setAttribute("role", "status");
    said.className = "quiet";
    const block = document.createElement("div");
    block.className = "lines";
    area.replaceWith(block);
    block.append(input, said, area);
    offer(input, address);
    const add = () => {
        const name = input.value.trim();
        if (name) {
            area.value = `${area.value.trimEnd()}\n${name}`.trimStart();
            said.textContent = `Added ${name}.`;
            input.value = "";
        }
    };
    input.addEventListener("keydown", (event) => {
        if (event.key === "Enter") {
            event.preventDefault();
            add();
        }
    });
    // The user has selected a suggestion, not typed a letter.
    input.addEventListener("input", (event) => {
        if (event.inputType === "insertReplacementText") {
            add();
        }
    });
};

for (const field of document.querySelectorAll("[data-names]")) {
    const start = field.localName === "textarea" ? offerForLines : offer;
    start(field, field.dataset.names);
}
