"use strict";
// <button data-copy="id">: copies the text of the element with that id, and says so.
document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) {
        return;
    }
    const source = document.getElementById(button.dataset.copy);
    let done = false;
    try {
        await navigator.clipboard.writeText(source.textContent.trim());
        done = true;
    } catch {
        // No clipboard over plain HTTP or without permission: select, for the keyboard.
        window.getSelection().selectAllChildren(source);
    }
    const status = document.getElementById(button.getAttribute("aria-describedby"));
    status.textContent = done ? "Copied." : "Selected: press Ctrl+C.";
});
