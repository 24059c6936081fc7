// Questions of lessons: compares a typed number with the measured one, and explains both.
(() => {
  const CLOSE = 0.1;
  const number = (text) => (/^\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)\s*$/.test(text) ? Number(text.replace(",", ".")) : NaN);

  function reply({ value, low, high, why }, text) {
    const given = number(text);
    if (Number.isNaN(given)) return "Write a number, such as 2.5.";
    if (given < Number(low) || given > Number(high)) return `${given} is outside the possible range, from ${low} to ${high}.`;
    const right = Number(value);
    if (Math.abs(given - right) <= CLOSE * Math.abs(right)) return `Yes, measured: ${value}. ${why}`;
    const factor = given > right ? given / right : right / given;
    const far = right === 0 || given === 0 ? "" : `, ${factor.toFixed(1)} times ${given > right ? "less" : "more"}`;
    return `Your prediction: ${given}. Measured: ${value}${far}. ${why}`;
  }

  for (const form of document.querySelectorAll("form.question")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      form.querySelector("output").textContent = reply(form.dataset, form.querySelector("input").value);
    });
  }
})();
