"use strict";
// <form data-passkey="get|create">: use or create a passkey with the options in the page, and submit
// the credential.
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
        status.textContent = "The passkey did not respond. Reload the page to try again.";
    }
});
