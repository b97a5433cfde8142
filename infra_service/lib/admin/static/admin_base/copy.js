"use strict";
// <button data-copy="id">: copy the text of the element with this id, and show a confirmation.
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
        // Without a clipboard (plain HTTP, no permission), select the text for the keyboard.
        window.getSelection().selectAllChildren(source);
    }
    const status = document.getElementById(button.getAttribute("aria-describedby"));
    status.textContent = done ? "Copied." : "Selected. Press Ctrl+C.";
});
