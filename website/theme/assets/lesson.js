// Questions of lessons: compares a typed number with the measured one, and explains both.
(() => {
  const number = (text) => (/^\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)\s*$/.test(text) ? Number(text.replace(",", ".")) : NaN);

  function reply({ value, close, low, high, why }, text) {
    const given = number(text);
    if (Number.isNaN(given)) return "Write a number, such as 2.5.";
    if (given < Number(low) || given > Number(high)) return `${given} is outside the possible range, from ${low} to ${high}.`;
    const right = Number(value);
    const accepted = Number(close) > 0 ? ` (accepted: up to ${close} more or less)` : "";
    // 0.1 + 0.2 is not 0.3.
    if (Math.abs(given - right) <= Number(close) + 1e-9) return `Yes, measured: ${value}${accepted}. ${why}`;
    return `Your answer: ${given}. Measured: ${value}${accepted}. ${why}`;
  }

  for (const form of document.querySelectorAll("form.question")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      form.querySelector("output").textContent = reply(form.dataset, form.querySelector("input").value);
    });
  }
})();
