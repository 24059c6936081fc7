// The control interface of `longfat relay --control`, for JavaScript (Node 18 or newer). One method for each request.

export class Relay {
  constructor(url = 'http://127.0.0.1:8475', token = process.env.LONGFAT_RELAY_TOKEN) {
    this.url = url;
    this.token = token;
  }

  async call(method, path, body) {
    const answer = await fetch(this.url + path, {
      method,
      headers: { Authorization: `Bearer ${this.token}`, 'Content-Type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const found = await answer.json();
    if (!answer.ok) throw new Error(`longfat: ${found.error}`);
    return found;
  }

  path() { return this.call('GET', '/path'); }
  set(keys) { return this.call('PATCH', '/path', keys); }
  outage(duration, direction = 'both') { return this.call('POST', '/outage', { duration, direction }); }
  endOutage() { return this.call('DELETE', '/outage'); }
  drop(count = 1, direction = 'both') { return this.call('POST', '/drops', { count, direction }); }
  reset() { return this.call('POST', '/resets'); }
  report() { return this.call('GET', '/report'); }
}
