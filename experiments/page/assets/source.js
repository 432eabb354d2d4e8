// Where the page's contents come from: script elements of the file, or the live server.

async function inflate(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).text();
}

class FileSource {
  constructor() {
    this.blocks = new Map();
  }

  async page() {
    return JSON.parse(await inflate(byId('page').textContent));
  }

  // Details of the trajectory at `place`, which is of `run` (a name).
  block(run, trajectory, place) {
    if (!this.blocks.has(place)) {
      this.blocks.set(place, inflate(byId(`block-${place}`).textContent).then(JSON.parse));
    }
    return this.blocks.get(place);
  }
}

class LiveSource {
  constructor() {
    this.version = '';
    this.blocks = new Map();
  }

  // The page if it has changed since the last call, else null.
  async page() {
    const answer = await this.ask('page', { seen: this.version });
    if (answer.status === 204) return null;
    this.version = answer.headers.get('X-Version');
    return answer.json();
  }

  // A block is asked for again once its trajectory has more turns.
  block(run, trajectory) {
    const key = JSON.stringify([run, trajectory.problem]);
    const known = this.blocks.get(key);
    if (known && known.turns === trajectory.turns.length) return known.block;
    const block = this.ask('block', { run, problem: trajectory.problem }).then((answer) => answer.json());
    this.blocks.set(key, { turns: trajectory.turns.length, block });
    block.catch(() => this.blocks.delete(key));
    return block;
  }

  async ask(what, query) {
    const answer = await fetch(`${what}?${new URLSearchParams(query)}`);
    if (!answer.ok) throw new Error(await answer.text());
    return answer;
  }
}
