package npm

// Touch asks the registry for the page of every package that the lockfile names:
// a client that has a lockfile asks for nothing before it installs, and what the
// gateway was not asked for it can't tell of. It also asks for the head of each
// file: that has the gateway fetch it, verify it and look into it, and gives no
// byte of it. What fails here is told by the plan.
const Touch = `cat >"$out/touch.js" <<'END'
const fs = require('fs'), { execFileSync } = require('child_process');
const wanted = new Map();
const want = (name, version) => wanted.set(name, (wanted.get(name) || new Set()).add(version));
if (fs.existsSync('package-lock.json')) {
  for (const [place, entry] of Object.entries(JSON.parse(fs.readFileSync('package-lock.json', 'utf8')).packages || {})) {
    const at = place.lastIndexOf('node_modules/');
    if (at >= 0 && !entry.link && !entry.inBundle) want(entry.name || place.slice(at + 13), entry.version);
  }
}
if (fs.existsSync('pnpm-lock.yaml')) {
  const text = fs.readFileSync('pnpm-lock.yaml', 'utf8');
  for (const m of text.matchAll(/^  '?\/?((?:@[^@\/\s]+\/)?[^@\/\s']+)@([^:\s'(]+)[^:\s]*:/gm)) want(m[1], m[2]);
}
const bases = new Map();
const base = (name) => {
  const scope = name.startsWith('@') ? name.split('/')[0] : '';
  if (!bases.has(scope)) {
    const ask = (key) => execFileSync('npm', ['config', 'get', key], { encoding: 'utf8' }).trim();
    const own = scope ? ask(scope + ':registry') : '';
    bases.set(scope, (own && own !== 'undefined' ? own : ask('registry')).replace(/\/*$/, '/'));
  }
  return bases.get(scope);
};
const left = [...wanted];
const work = async () => {
  for (let next; (next = left.pop()) !== undefined;) {
    const [name, versions] = next;
    try {
      const r = await fetch(base(name) + name.replace('/', '%2f'), { headers: { accept: 'application/vnd.npm.install-v1+json' } });
      const page = await r.json();
      for (const v of versions) {
        const release = (page.versions || {})[v];
        if (release) await fetch(release.dist.tarball, { method: 'HEAD' });
      }
    } catch (e) { console.error(name + ': ' + e.message); }
  }
};
Promise.all(Array.from({ length: 8 }, work));
END
node "$out/touch.js" || exit`
