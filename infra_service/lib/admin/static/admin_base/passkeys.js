"use strict";
// <form data-passkey="get|create">: asks a passkey the page's question, and sends what it answers.
document.addEventListener("submit", async (event) => {
    const form = event.target.closest("form[data-passkey]");
    if (!form) {
        return;
    }
    event.preventDefault();
    const status = form.querySelector("[role=status]");
    try {
        const asked = JSON.parse(document.getElementById("passkey-question").textContent).publicKey;
        const credential = form.dataset.passkey === "create"
            ? await navigator.credentials.create({publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(asked)})
            : await navigator.credentials.get({publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(asked)});
        form.elements.credential.value = JSON.stringify(credential.toJSON());
        form.submit();
    } catch {
        status.textContent = "No passkey has answered. Reload the page to try again.";
    }
});
