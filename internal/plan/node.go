package plan

import "github.com/cofferdam-dev/cofferdam/internal/fault"

// touch asks the registry for the page of every package that the lockfile names:
// a client that has a lockfile asks for nothing before it installs, and what the
// gateway was not asked for it can't tell of. It also asks for the head of each
// file: that has the gateway fetch it, verify it and look into it, and gives no
// byte of it. What fails here is told by the plan.
const touch = `cat >"$out/touch.js" <<'END'
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

// npm resolves with --package-lock-only. The lockfile has no registry's host.
func npm(words []string, p Project) (Rewrite, error) {
	if err := refuseAny("npm install", words, "the project's folder can't be another one", "--prefix", "-C"); err != nil {
		return Rewrite{}, err
	}
	words = without(words,
		[]string{"-g", "--global", "--no-package-lock", "--dry-run", "--ignore-scripts", "--package-lock-only"}, []string{"--location", "--package-lock"})
	own := []string{"npm", "install", "--package-lock-only", "--ignore-scripts", "--omit-lockfile-registry-resolved"}
	return Rewrite{Client: NPM, Argv: p.script(append([]string{command(append(own, words...)...)}, npmEmit()...)...)}, nil
}

// npmEmit touches and puts out what the resolver left.
func npmEmit() []string {
	return []string{
		"[ -f npm-shrinkwrap.json ] && mv npm-shrinkwrap.json package-lock.json",
		touch,
		"emit " + framePackageLock + " package-lock.json",
	}
}

// npmCI has nothing to resolve: its plan is the lockfile.
func npmCI(words []string, p Project) (Rewrite, error) {
	for _, w := range words {
		if len(w) == 0 || w[0] != '-' {
			return Rewrite{}, fault.Invalid("npm ci takes no packages; %q can't be planned", clip(w))
		}
	}
	check := `[ -f npm-shrinkwrap.json ] || [ -f package-lock.json ] || { echo "npm ci needs a package-lock.json" >&2; exit 1; }`
	return Rewrite{Client: NPM, Argv: p.script(append([]string{check}, npmEmit()...)...)}, nil
}

// pnpm resolves with --lockfile-only.
func pnpm(word string, words []string, p Project) (Rewrite, error) {
	if err := refuseAny("pnpm "+word, words, "it is not the project's install", "-g", "--global", "-C", "--dir", "--offline"); err != nil {
		return Rewrite{}, err
	}
	words = without(words, []string{"--lockfile-only", "--ignore-scripts", "--no-lockfile", "--frozen-lockfile"}, nil)
	resolve := command(append([]string{"pnpm", word, "--lockfile-only", "--ignore-scripts", "--no-frozen-lockfile"}, words...)...)
	if word == "add" {
		resolve = command(append([]string{"pnpm", word, "--lockfile-only", "--ignore-scripts"}, words...)...)
	}
	return Rewrite{Client: PNPM, Argv: p.script("rm -f package-lock.json", resolve, touch, "emit "+framePnpmLock+" pnpm-lock.yaml")}, nil
}
